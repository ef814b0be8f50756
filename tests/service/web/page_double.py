"""A service without a model, with the answers of the public API: what the page is tested against.

It translates word by word, or by a few sentences that it knows; what a text says may make it slow (SLOW), busy (BUSY),
or fail (FAIL). `asked` are the bodies of the translations asked for, in order.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.datastructures import UploadFile

from service.routes import page

NAMES = {"ar": "Arabic", "de": "German", "en": "English", "fr": "French"}
TARGETS = {"ar": ["en"], "de": ["en"], "en": ["ar", "de", "fr"], "fr": ["de"]}
KEY = "secret"
LIMIT = 2000
UNFAMILIAR = "mortgage"  # a sentence with this word is unlike the training text
UNKNOWN = "Zyklon"  # a word that is copied
BRIDGED = "bridged"  # a text with this word is translated by way of English
TERMS = ("glossary", "do_not_translate")
LETTERS = "abcdefghijklmnopqrst"
MORE = {"sw": "Swahili", "sv": "Swedish", "es": "Spanish", "el": "Greek", "uk": "Ukrainian"}
DETECTIONS = {"xyzzy": 0, "qwer": 46}  # words with which a detected language is less sure, in percent
SECOND_MODEL = "captions"  # from English into German only

WORDS = {
    ("en", "de"): {
        "a": "ein",
        "the": "der",
        "dog": "Hund",
        "cat": "Katze",
        "runs": "läuft",
        "sleeps": "schläft",
        "on": "auf",
        "beach": "Strand",
        "sees": "sieht",
        "and": "und",
        "man": "Mann",
        "hello": "hallo",
    },
    ("en", "ar"): {"the": "ال", "dog": "كلب", "sleeps": "ينام", "hello": "مرحبا"},
    ("de", "en"): {"der": "the", "hund": "dog", "schläft": "sleeps", "hallo": "hello", "läuft": "runs"},
}
UNSURE = {"beach": 62, "and": 31}
"""Words that make a sentence less sure."""

Links = list[list[list[int]]]


@dataclass
class Double:
    """What it was asked, and what it is told to lack."""

    key_required: bool = False
    second_model: bool = False  # whether a second model translates from English into German
    many: bool = False  # whether it has fifty further target languages
    offered_terms: list[dict[str, str]] = field(default_factory=list)  # the operator's, for every user of the page
    offered_memories: list[str] = field(default_factory=list)  # ids of `memories`
    suggestions: bool = False  # whether it accepts suggestions
    suggested: list[dict[str, Any]] = field(default_factory=list)  # bodies of POST /suggest
    asked: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    file_models: list[str | None] = field(default_factory=list)  # the field of POST /translate_file
    file_terms: list[dict[str, Any]] = field(default_factory=list)  # glossary fields of POST /translate_file
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id, with "pairs": {source: target}
    refused: int = 0

    def translate(self, text: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one text."""
        source = body["source"] if body["source"] != "auto" else detected(text)
        if body["source"] == "auto" and "buongiorno" in text.lower():  # a language that no model translates
            language = {"language": "it", "confidence": 98}
            return {"translatedText": text, "detectedLanguage": language, "quality": None, "segments": []}
        if source == body["target"]:  # nothing is translated
            language = {"language": source, "confidence": confidence(text)}
            return {"translatedText": text, "detectedLanguage": language, "quality": 100.0, "segments": []}
        segments, translation, read = [], "", 0
        for found in re.finditer(r"[^\s.!?][^.!?\n]*[.!?]*", text):
            translation += text[read : found.start()]
            read = found.end()
            segment, written = self.segment(found, len(translation), (source, body["target"]), body)
            segments.append(segment)
            translation += written
        translation += text[read:]
        answer: dict[str, Any] = {"translatedText": translation}
        if body["source"] == "auto":
            answer["detectedLanguage"] = {"language": source, "confidence": confidence(text)}
        if "model" in body:
            pair = f"{source}-{body['target']}"
            answer["models"] = [pair if body["model"] == "default" else body["model"]]
        if BRIDGED in text:
            answer |= {"bridge": "en", "models": ["de-ar", "ar-en"]}
        if body.get("alternatives"):
            answer["alternatives"] = [f"{start}{translation}" for start in ("Nun: ", "Also: ", "Ja, ")]
        if body.get("quality"):
            known = [each["quality"] for each in segments if each["quality"] is not None]
            answer["quality"] = sum(known) / len(known) if known else None
        if body.get("segments"):
            answer["segments"] = segments
        return answer

    def segment(
        self, found: re.Match[str], start: int, pair: tuple[str, str], body: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        """A sentence, with offsets in the whole texts, and its translation."""
        stored, score = self.match(found.group(), body.get("memory", ""))
        if score >= body.get("memory_threshold", 100) / 100:
            place = {"source": [found.start(), found.end()], "target": [start, start + len(stored)]}
            return {**place, "quality": 100 if score == 1 else 88, "match": score}, stored
        glossary = {term.lower(): wording for term, wording in body.get("glossary", {}).items()}
        offered = self.offered_terms if body.get("glossary_id") == "operator" else []
        company = {term["term"]: term["translation"] for term in offered if (term["source"], term["target"]) == pair}
        known = {
            **WORDS.get(pair, {}),
            **company,
            **glossary,
            **{word.lower(): word for word in body.get("do_not_translate", [])},
        }
        written, links, read, pieces = "", [], 0, []
        for word in re.finditer(r"\w+", found.group()):
            written += found.group()[read : word.start()]
            wording = known.get(word.group().lower(), word.group())
            begin = start + len(written)
            source = [found.start() + word.start(), found.start() + word.end()]
            links.append([source, [begin, begin + len(wording)]])
            pieces.append((word.group(), wording))
            written += wording
            read = word.end()
        written += found.group()[read:]
        quality = min((UNSURE.get(word.lower(), 88) for word, _ in pieces), default=88)
        unfamiliar = any(word.lower() == UNFAMILIAR for word, _ in pieces)
        segment: dict[str, Any] = {
            "source": [found.start(), found.end()],
            "target": [start, start + len(written)],
            "quality": None if unfamiliar else quality,
        }
        if unfamiliar:
            segment["unfamiliar"] = True
        if body.get("untranslated") and UNKNOWN in found.group():
            segment["untranslated"] = [UNKNOWN]
        if body.get("alignment"):
            segment["alignment"] = links
        if body.get("attention"):
            sides = (
                [*("<0x3F>" if word == "byte" else f"▁{word}" for word in side), "</s>"]
                for side in zip(*pieces, strict=True)
            )
            segment["attention"] = attention(*sides)
        return segment, written

    def match(self, sentence: str, memory: str) -> tuple[str, float]:
        """The translation of the most similar sentence of the memory, and its similarity."""
        pairs = self.memories[memory]["pairs"] if memory else {}

        def score(source: str) -> float:
            return round(SequenceMatcher(None, source.split(), sentence.split(), False).ratio(), 2)

        return max(
            ((target, score(source)) for source, target in pairs.items()), key=lambda one: one[1], default=("", 0)
        )


def attention(source: list[str], target: list[str]) -> dict[str, Any]:
    """Two layers of four heads, each looking at the same place or some places further on."""

    def row(place: int, spread: int) -> list[float]:
        weights = [1 / (1 + (spread + 1) * abs(column - place)) ** 2 for column in range(len(source))]
        return [weight / sum(weights) for weight in weights]

    def layer(number: int) -> list[list[list[float]]]:
        return [[row(place + head - number, head) for place in range(len(target))] for head in range(4)]

    return {"source": source, "target": target, "weights": [layer(0), layer(1)]}


def detected(text: str) -> str:
    words = re.findall(r"\w+", text.lower())
    german = sum(word in WORDS["de", "en"] for word in words)
    return "de" if german > sum(word in WORDS["en", "de"] for word in words) else "en"


def confidence(text: str) -> int:
    """The confidence of a detected language, in percent."""
    return min((percent for word, percent in DETECTIONS.items() if word in text.lower()), default=97)


def problem(status: int, message: str, retry_after: int | None = None, code: str = "") -> JSONResponse:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return JSONResponse({"error": message, "message": message, "status": status, "code": code}, status, headers)


def create_double(double: Double) -> FastAPI:
    app = FastAPI()
    app.include_router(page.router)

    @app.get("/languages")
    def languages() -> list[dict[str, Any]]:
        more = {f"qa{letter}": f"Language {letter.upper()}" for letter in LETTERS} | MORE if double.many else {}
        targets = {code: [*TARGETS[code], *more] for code in NAMES} | {code: ["en"] for code in more}
        names = NAMES | more
        return [{"code": code, "name": names[code], "native_name": "", "targets": targets[code]} for code in names]

    @app.get("/models")
    def models() -> list[dict[str, Any]]:
        pairs = [f"{source}-{target}" for source, targets in TARGETS.items() for target in targets if source != target]
        about = {"en-de": "This model was trained on phrases."}
        names = [(pair, pair) for pair in pairs]
        if double.second_model:
            names.append((SECOND_MODEL, "en-de"))
            about[SECOND_MODEL] = "This model was trained on captions."
        return [
            {
                "name": name,
                "sources": [pair[:2]],
                "targets": [pair[3:]],
                "pairs": [pair],
                "about": about.get(name, ""),
                "licence": "CC-BY 4.0" if name == "en-de" else "",
                "bundled": name == "en-de",
            }
            for name, pair in names
        ]

    @app.get("/frontend/settings")
    def settings() -> dict[str, Any]:
        return {
            "charLimit": LIMIT,
            "frontendTimeout": 300,
            "apiKeys": double.key_required,
            "keyRequired": double.key_required,
            "suggestions": double.suggestions,
            "filesTranslation": True,
            "supportedFilesFormat": [".txt", ".html", ".docx"],
            "glossary": double.offered_terms,
            "formality": ["de", "fr"],
            "memories": [double.memories[id] for id in double.offered_memories],
            "language": {"source": {"code": "en", "name": "English"}, "target": {"code": "de", "name": "German"}},
        }

    @app.post("/translate")
    async def translate(request: Request) -> Response:
        body = await request.json()
        double.asked.append(body)
        if double.key_required and body.get("api_key") != KEY:
            return problem(403, "refused", code="invalid_key")
        if (memory := body.get("memory", "")) and memory not in double.memories:
            return problem(404, f"There is no translation memory {memory}")
        if "BUSY" in body["q"] and not double.refused:
            double.refused += 1
            return problem(503, "The service is busy: try again in 1 s", 1)
        if "FAIL" in body["q"]:
            return problem(500, "Internal error")
        if body.get("model") == SECOND_MODEL and body["source"] == "auto" and detected(body["q"]) != "en":
            error = {"error": "de is not supported; accepted: en", "code": "unsupported_language", "status": 400}
            return JSONResponse(error, 400)
        if "SLOW" in body["q"]:
            await asyncio.sleep(1.2)
        answer = double.translate(body["q"], body)
        if body.get("stream"):
            return StreamingResponse(streamed(body["q"], answer), media_type="text/event-stream")
        return JSONResponse(answer)

    @app.post("/detect")
    async def detect(request: Request) -> list[dict[str, Any]]:
        text = (await request.json())["q"]
        return [{"language": detected(text), "confidence": float(confidence(text))}]

    @app.post("/suggest")
    async def suggest(request: Request) -> Response:
        body = await request.json()
        if "FAIL" in body["s"]:
            return problem(429, "Slowdown: 500 per 1 day", 60)
        double.suggested.append(body)
        return JSONResponse({"success": True})

    @app.post("/translate_file")
    async def translate_file(request: Request) -> Response:
        async with request.form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile) and file.filename is not None
            name, content = file.filename, await file.read()
            double.file_models.append(str(form["model"]) if "model" in form else None)
            named = {"glossary_id": str(form["glossary_id"])} if "glossary_id" in form else {}
            double.file_terms.append(named | {name: json.loads(str(form[name])) for name in TERMS if name in form})
            body = {key: form.get(key, "") for key in ("source", "target", "memory")}
            quality = form.get("quality")
        if body["memory"] and body["memory"] not in double.memories:
            return problem(404, f"There is no translation memory {body['memory']}")
        answer = double.translate(content.decode(), body)
        tmx = f"{name}.tmx"
        double.files |= {name: answer["translatedText"].encode(), tmx: b"<tmx/>"}
        # as behind a proxy that offers https and is not trusted: only the name leads to the file
        urls = [f"http://internal.invalid/download_file/{stored}" for stored in (name, tmx)]
        counts = {"sentences": 3, "doubtful": content.count(b"DOUBTFUL")} if quality == "true" else {}
        return JSONResponse({"translatedFileUrl": urls[0], "tmxUrl": urls[1], **counts})

    @app.put("/memories")
    async def put_memory(request: Request) -> Response:
        async with request.form() as form:
            file, fields = form["file"], {key: str(form[key]) for key in ("source", "target")}
            assert isinstance(file, UploadFile) and file.filename is not None
            lines = (await file.read()).decode().splitlines()
        if not all("\t" in line for line in lines):
            return problem(400, f"Invalid request: {file.filename}:1: has 1 column where at least 2 are needed")
        pairs = dict(line.split("\t") for line in lines if line.strip())
        name = str(form.get("name") or file.filename.rsplit(".")[0])
        for memory in double.memories.values():
            if memory["key"] and (memory["key"], memory["name"]) == (form.get("api_key"), name):
                memory["pairs"] |= pairs
                return JSONResponse({**memory, "skipped": 0})
        about: dict[str, Any] = {"id": f"id-{len(double.memories)}", "name": name, **fields, "units": len(pairs)}
        double.memories[about["id"]] = {**about, "pairs": pairs, "key": form.get("api_key")}
        return JSONResponse({**about, "skipped": len(lines) - len(pairs)})

    @app.get("/memories")
    def list_memories(request: Request) -> dict[str, Any]:
        key = request.headers.get("Authorization", "").removeprefix("DeepL-Auth-Key ")
        return {"memories": [memory for memory in double.memories.values() if key and memory["key"] == key]}

    @app.delete("/memories/{id}")
    def delete_memory(id: str) -> Response:
        return Response(status_code=204) if double.memories.pop(id, None) else problem(404, "There is none")

    @app.get("/download_file/{name}")
    def download(name: str) -> Response:
        return Response(double.files[name], media_type="text/plain; charset=utf-8")

    return app


async def streamed(text: str, answer: dict[str, Any]) -> AsyncIterator[str]:
    def event(name: str, data: Any) -> str:
        return f"event: {name}\ndata: {json.dumps(data)}\n\n"

    segments = answer["segments"]
    read = written = 0
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        end, stop = (len(text), len(answer["translatedText"])) if last else (segment["source"][1], segment["target"][1])
        part = {"index": index, "source": [read, end], "quality": segment["quality"]}
        yield event("segment", {**part, "translatedText": answer["translatedText"][written:stop]})
        read, written = end, stop
        await asyncio.sleep(0.01)
    yield event("done", answer)
