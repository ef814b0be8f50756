"""LibreTranslate's endpoints, with each documented parameter; by libretranslatepy where it has them."""

from typing import Any

import httpx
from libretranslatepy import LibreTranslateAPI

from tests.service.clients.rows import EFFECT, NONE, Row, World

REFUSED = "refused: 400"
MARKUP = '<p translate="no">The cat eats.</p>'  # plain strings may have tags, but no attributes that are obeyed
DOG = "The dog sleeps."


def get(world: World, path: str) -> httpx.Response:
    return httpx.get(world.url + path, trust_env=False, timeout=60).raise_for_status()


def translated(world: World, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"q": DOG, "source": "en", "target": "de", **fields}
    answer: dict[str, Any] = world.post("/translate", **body).json()
    return answer


def python(world: World) -> LibreTranslateAPI:
    return LibreTranslateAPI(world.url, world.key)


def file(world: World, **fields: str) -> str:
    """Return the translation of an uploaded file."""
    form = {"source": "en", "target": "de", "api_key": world.key, **fields}
    content = {"file": ("a.txt", DOG)}
    answer = httpx.post(f"{world.url}/translate_file", data=form, files=content, trust_env=False, timeout=60)
    return httpx.get(answer.raise_for_status().json()["translatedFileUrl"], trust_env=False).text


def preflight(world: World) -> bool:
    """Return whether a page of another site may send a request."""
    headers = {
        "Origin": "https://a.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    answer = httpx.options(f"{world.url}/translate", headers=headers, trust_env=False).raise_for_status()
    return answer.headers["access-control-allow-origin"] == "*"


def suggested(world: World, **fields: str) -> bool:
    body = {"q": DOG, "s": "Der Hund pennt.", "source": "en", "target": "de", **fields}
    return bool(world.post("/suggest", **body).json()["success"])


LIBRETRANSLATE_ROWS = [
    Row(
        "POST /translate",
        "q, source, target",
        EFFECT,
        lambda world: translated(world)["translatedText"] == "Der Hund schläft.",
    ),
    Row(
        "POST /translate",
        "q as a list",
        EFFECT,
        lambda world: translated(world, q=[DOG, ""])["translatedText"] == ["Der Hund schläft.", ""],
    ),
    Row("POST /translate", "q missing", REFUSED, lambda world: bool(translated(world, q=None))),
    Row(
        "POST /translate",
        "q of no characters",
        EFFECT,
        lambda world: translated(world, q="")["translatedText"] == "",
        "the translation is empty; LibreTranslate answers 400",
    ),
    Row(
        "POST /translate",
        "source=auto",
        EFFECT,
        lambda world: translated(world, source="auto")["detectedLanguage"]["language"] == "en",
    ),
    Row(
        "POST /translate",
        "source=EN, target=DE",
        EFFECT,
        lambda world: translated(world, source="EN", target="DE") == translated(world),
    ),
    Row("OPTIONS /translate", "", EFFECT, preflight, "any origin; restricted by `--allow-origins`"),
    Row("POST /translate", "source=zz", REFUSED, lambda world: bool(translated(world, source="zz"))),
    Row(
        "POST /translate",
        "format=html",
        EFFECT,
        lambda world: translated(world, q=MARKUP, format="html") != translated(world, q=MARKUP),
    ),
    Row("POST /translate", "format=md", REFUSED, lambda world: bool(translated(world, format="md"))),
    Row(
        "POST /translate",
        "alternatives",
        EFFECT,
        lambda world: len(translated(world, alternatives=2)["alternatives"]) == 2,
    ),
    Row(
        "POST /translate",
        "alternatives=-1",
        NONE,
        lambda world: translated(world, alternatives=-1) != translated(world),
        "means 0",
    ),
    Row("POST /translate", "alternatives=99", REFUSED, lambda world: bool(translated(world, alternatives=99))),
    Row("POST /translate", "api_key missing", "refused: 400", lambda world: bool(translated(world, api_key=None))),
    Row("POST /translate", "api_key unknown", "refused: 403", lambda world: bool(translated(world, api_key="x"))),
    Row("POST /detect", "q", EFFECT, lambda world: world.post("/detect", q=DOG).json()[0]["language"] == "en"),
    Row(
        "POST /detect",
        "q as a list",
        EFFECT,
        lambda world: world.post("/detect", q=[DOG]).json()[0]["language"] == "en",
    ),
    Row(
        "POST /detect", "api_key unknown", "refused: 403", lambda world: bool(world.post("/detect", q=DOG, api_key="x"))
    ),
    Row(
        "GET /languages",
        "",
        EFFECT,
        lambda world: [one["code"] for one in get(world, "/languages").json()] == ["de", "en", "fr"],
    ),
    Row(
        "GET /frontend/settings",
        "",
        EFFECT,
        lambda world: get(world, "/frontend/settings").json()["suggestions"] is True,
    ),
    Row("GET /health", "", EFFECT, lambda world: get(world, "/health").json() == {"status": "ok"}),
    Row("GET /spec", "", EFFECT, lambda world: "/translate" in get(world, "/spec").json()["paths"]),
    Row("GET /docs", "", EFFECT, lambda world: "/translate" in get(world, "/docs").text),
    Row("POST /translate_file", "file, source, target", EFFECT, lambda world: file(world) == "Der Hund schläft."),
    Row("POST /translate_file", "source=zz", REFUSED, lambda world: bool(file(world, source="zz"))),
    Row("POST /translate_file", "api_key unknown", "refused: 403", lambda world: bool(file(world, api_key="x"))),
    Row("GET /download_file/NAME", "", EFFECT, lambda world: file(world) == "Der Hund schläft."),
    Row("POST /suggest", "q, s, source, target", EFFECT, suggested, "403 unless `--suggestions true`"),
    Row("POST /suggest", "target=zz", REFUSED, lambda world: suggested(world, target="zz")),
    Row("POST /suggest", "api_key unknown", "refused: 403", lambda world: suggested(world, api_key="x")),
    Row(
        "libretranslatepy translate",
        "q, source, target",
        EFFECT,
        lambda world: python(world).translate(DOG, "en", "de") == "Der Hund schläft.",
    ),
    Row(
        "libretranslatepy translate",
        "timeout",
        EFFECT,
        lambda world: bool(python(world).translate(DOG, "en", "de", 60)),
        "client only",
    ),
    Row("libretranslatepy detect", "q", EFFECT, lambda world: python(world).detect(DOG)[0]["language"] == "en"),
    Row("libretranslatepy detect", "timeout", EFFECT, lambda world: bool(python(world).detect(DOG, 60)), "client only"),
    Row("libretranslatepy languages", "", EFFECT, lambda world: len(python(world).languages()) == 3),
    Row(
        "libretranslatepy languages",
        "timeout",
        EFFECT,
        lambda world: len(python(world).languages(60)) == 3,
        "client only",
    ),
]
