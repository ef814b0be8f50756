"""Folders of M2M-100, NLLB-200 and mBART-50 models with random weights, written by the classes of transformers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece
import transformers

from mt.interop.language_codes import NLLB200
from mt.interop.multilingual import SENTENCEPIECE
from tests.interop.random_models import random_model, sentencepiece_model

WORDS = {
    "en": "the dog sees a cat in an old house man finds red river and wind is quick",
    "de": "der hund sieht eine katze im alten haus mann findet roten fluss und wind ist schnell",
    "ru": "собака видит кошку в старом доме человек находит красную реку и ветер быстрый",
    "el": "ο σκύλος βλέπει μια γάτα στο παλιό σπίτι άνδρας βρίσκει κόκκινο ποτάμι",
    "ar": "الكلب يرى القطة في البيت القديم الرجل يجد النهر الأحمر والريح سريعة",
    "hi": "कुत्ता पुराने घर में बिल्ली को देखता है आदमी लाल नदी पाता और हवा तेज",
    "zh": "狗 在 老房子 里 看见 猫 男人 找到 红色 的 河 和 风 很快",
    "ko": "개가 오래된 집에서 고양이를 본다 남자가 빨간 강을 찾는다 바람이 빠르다",
}
ENDS = (".", "?", "!", "", " 2024", " 50 %", "。")


def lines(count: int, seed: int = 1) -> list[str]:
    """Lines of three to nine words; each line is of one language, or mixes two."""
    random = Random(seed)
    texts = []
    for _ in range(count):
        both = random.sample(sorted(WORDS), 2)
        words = [*WORDS[both[0]].split(), *(WORDS[both[1]].split() if random.random() < 0.2 else [])]
        space = "" if both[0] == "zh" else " "
        texts.append(space.join(random.choices(words, k=random.randint(3, 9))) + random.choice(ENDS))
    return texts


@dataclass(frozen=True)
class Family:
    """A family, with languages as its tokenizer names them."""

    name: str
    kind: str  # of its SentencePiece model
    source: str
    target: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path, shard_size: str = "1GB", **changes: Any) -> Path:
        folder.mkdir(parents=True)
        content = sentencepiece_model(lines(1000), 400, model_type=self.kind, character_coverage=1.0)
        (folder / SENTENCEPIECE).write_bytes(content)
        if self.name == "M2M-100":
            processor = sentencepiece.SentencePieceProcessor(model_proto=content)
            pieces = [processor.id_to_piece(id) for id in range(3, processor.vocab_size())]
            ids = {piece: id for id, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
            (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
        tokenizer = self.tokenizer(folder)
        size = max({**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}.values()) + 1
        special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
        options = {**special, "vocab_size": size + 3, **self.changes, **changes}
        random_model(self.model_class, **options).save_pretrained(folder, max_shard_size=shard_size)
        return folder

    @property
    def model_class(self) -> str:
        return f"{'MBart' if self.name == 'mBART-50' else 'M2M100'}ForConditionalGeneration"

    def tokenizer(self, folder: Path) -> Any:
        if self.name == "M2M-100":
            files = (str(folder / "vocab.json"), str(folder / SENTENCEPIECE))
            return transformers.M2M100Tokenizer(*files, src_lang=self.source)
        if self.name == "mBART-50":
            plain = transformers.MBart50Tokenizer.from_pretrained(folder)
            return transformers.MBart50Tokenizer(
                plain._vocab_scores,
                sentencepiece_charsmap(folder / SENTENCEPIECE),  # `from_pretrained` loses it
                src_lang=self.source,
            )
        plain = transformers.NllbTokenizer.from_pretrained(folder)  # of a folder without tokenizer.json: no languages
        vocabulary = {piece: id for piece, id in plain._vocab.items() if piece not in ("<mask>", *NLLB200)}
        vocabulary |= {token: len(vocabulary) + number for number, token in enumerate((*NLLB200, "<mask>"))}
        return transformers.NllbTokenizer(
            vocabulary,
            plain._merges,
            src_lang=self.source,
            _spm_precompiled_charsmap=sentencepiece_charsmap(folder / SENTENCEPIECE),
        )

    def model(self, folder: Path) -> Any:
        return getattr(transformers, self.model_class).from_pretrained(folder).eval()


def score(folder: Path, pieces: Sequence[str]) -> float:
    """The score of a segmentation by the folder's SentencePiece model, which maximises it if it is a unigram model."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / SENTENCEPIECE))
    return sum(float(processor.get_score(processor.piece_to_id(piece))) for piece in pieces)


def sentencepiece_charsmap(path: Path) -> Any:
    """The table by which a SentencePiece model normalises characters."""
    proto = sentencepiece.sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


FAMILIES = (
    Family("M2M-100", "bpe", "en", "de"),
    Family("NLLB-200", "bpe", "rus_Cyrl", "zho_Hant"),
    Family("mBART-50", "unigram", "hi_IN", "en_XX", {"activation_function": "relu"}),
    Family("mBART-50", "unigram", "en_XX", "ar_AR", {"activation_function": "gelu", "scale_embedding": False}),
)
