import pytest

from mt.data.language_check import SAMPLE, LanguageSample, check_languages

PAIRS = [("The dog sleeps under the old tree.", "Der Hund schläft unter dem alten Baum.")] * 10
CHINESE = [("The dog sleeps under the old tree.", "狗在花园里的那棵老树下睡着了，猫坐在旁边看着它。")] * 10


@pytest.mark.parametrize(
    ("pairs", "languages", "expected"),
    [
        (PAIRS, "en de", []),
        (PAIRS, "en-GB de-AT", []),
        (CHINESE, "en zh", []),
        (CHINESE, "en zt", []),
        (PAIRS[:9], "de en", []),  # too few to be sure
        ([("one", "eins")] * 20, "de en", []),  # too short
        (PAIRS, "de en", ["'de' reads as English ('en'); are the lang", "'en' reads as German ('de'); are the lang"]),
        (PAIRS, "en fr", ["'fr' reads as German ('de'); is this the right file?"]),
    ],
)
def test_warnings(pairs: list[tuple[str, str]], languages: str, expected: list[str]) -> None:
    sample = LanguageSample()
    for pair in pairs:
        sample.add(*pair)
    source, target = languages.split()
    warnings = check_languages("corpus.{language}", (), sample.pairs, (source, target))
    assert len(warnings) == len(expected)
    for warning, part in zip(warnings, expected, strict=True):
        assert warning.startswith(f"corpus.{{language}}: the file of {part}")


@pytest.mark.parametrize("length", [1, 99, 100, 199, 1000])
def test_a_sample_is_evenly_spaced(length: int) -> None:
    sample = LanguageSample()
    for number in range(length):
        sample.add(str(number), "")
    numbers = [int(source) for source, _ in sample.pairs]
    stride = numbers[1] if length > 1 else 1
    assert numbers == list(range(0, length, stride)) and min(length, SAMPLE // 2) <= len(numbers) < SAMPLE
