"""LibreTranslate's endpoints, with each documented parameter; by libretranslatepy where it has them."""

from typing import Any

import httpx
from libretranslatepy import LibreTranslateAPI

from tests.service.clients.rows import EFFECT, NONE, Row, World, rows

REFUSED = "refused: 400"
MARKUP = '<p translate="no">The cat eats.</p>'  # plain strings may have tags, but no attributes that are obeyed
DOG = "The dog sleeps."


def get(world: World, path: str) -> httpx.Response:
    return httpx.get(world.url + path, trust_env=False, timeout=300).raise_for_status()


def translated(world: World, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"q": DOG, "source": "en", "target": "de", **fields}
    answer: dict[str, Any] = world.post("/translate", **body).json()
    return answer


def python(world: World) -> LibreTranslateAPI:
    return LibreTranslateAPI(world.url, world.key)


def file(world: World, **fields: str) -> str:
    form = {"source": "en", "target": "de", "api_key": world.key, **fields}
    content = {"file": ("a.txt", DOG)}
    answer = httpx.post(f"{world.url}/translate_file", data=form, files=content, trust_env=False, timeout=300)
    return httpx.get(answer.raise_for_status().json()["translatedFileUrl"], trust_env=False).text


def preflight(world: World) -> bool:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    headers = {"Origin": "https://a.example", **asked}
    answer = httpx.options(f"{world.url}/translate", headers=headers, trust_env=False).raise_for_status()
    return answer.headers["access-control-allow-origin"] == "*"


def suggested(world: World, **fields: str) -> bool:
    body = {"q": DOG, "s": "Der Hund pennt.", "source": "en", "target": "de", **fields}
    return bool(world.post("/suggest", **body).json()["success"])


LIBRETRANSLATE_ROWS = [
    *rows(
        "POST /translate",
        ("q, source, target", lambda world: translated(world)["translatedText"] == "Der Hund schläft."),
        ("q as a list", lambda world: translated(world, q=[DOG, ""])["translatedText"] == ["Der Hund schläft.", ""]),
        ("q missing", lambda world: bool(translated(world, q=None)), REFUSED),
        (
            "q of no characters",
            lambda world: translated(world, q="")["translatedText"] == "",
            EFFECT,
            "the translation is empty; LibreTranslate answers 400",
        ),
        ("source=auto", lambda world: translated(world, source="auto")["detectedLanguage"]["language"] == "en"),
        ("source=EN, target=DE", lambda world: translated(world, source="EN", target="DE") == translated(world)),
    ),
    Row("OPTIONS /translate", "", preflight, note="any origin; restricted by `--allow-origins`"),
    *rows(
        "POST /translate",
        ("source=zz", lambda world: bool(translated(world, source="zz")), REFUSED),
        ("format=html", lambda world: translated(world, q=MARKUP, format="html") != translated(world, q=MARKUP)),
        ("format=md", lambda world: bool(translated(world, format="md")), REFUSED),
        ("alternatives", lambda world: len(translated(world, alternatives=2)["alternatives"]) == 2),
        ("alternatives=-1", lambda world: translated(world, alternatives=-1) != translated(world), NONE, "means 0"),
        ("alternatives=99", lambda world: bool(translated(world, alternatives=99)), REFUSED),
        ("api_key missing", lambda world: bool(translated(world, api_key=None)), "refused: 400"),
        ("api_key unknown", lambda world: bool(translated(world, api_key="x")), "refused: 403"),
    ),
    *rows(
        "POST /detect",
        ("q", lambda world: world.post("/detect", q=DOG).json()[0]["language"] == "en"),
        ("q as a list", lambda world: world.post("/detect", q=[DOG]).json()[0]["language"] == "en"),
        ("api_key unknown", lambda world: bool(world.post("/detect", q=DOG, api_key="x")), "refused: 403"),
    ),
    Row(
        "GET /languages",
        "",
        lambda world: [one["code"] for one in get(world, "/languages").json()] == ["de", "en", "fr"],
    ),
    Row("GET /frontend/settings", "", lambda world: get(world, "/frontend/settings").json()["suggestions"] is True),
    Row("GET /health", "", lambda world: get(world, "/health").json() == {"status": "ok"}),
    Row("GET /spec", "", lambda world: "/translate" in get(world, "/spec").json()["paths"]),
    Row("GET /docs", "", lambda world: "/translate" in get(world, "/docs").text),
    *rows(
        "POST /translate_file",
        ("file, source, target", lambda world: file(world) == "Der Hund schläft."),
        ("source=zz", lambda world: bool(file(world, source="zz")), REFUSED),
        ("api_key unknown", lambda world: bool(file(world, api_key="x")), "refused: 403"),
    ),
    Row("GET /download_file/NAME", "", lambda world: file(world) == "Der Hund schläft."),
    *rows(
        "POST /suggest",
        ("q, s, source, target", suggested, EFFECT, "403 unless `--suggestions true`"),
        ("target=zz", lambda world: suggested(world, target="zz"), REFUSED),
        ("api_key unknown", lambda world: suggested(world, api_key="x"), "refused: 403"),
    ),
    *rows(
        "libretranslatepy translate",
        ("q, source, target", lambda world: python(world).translate(DOG, "en", "de") == "Der Hund schläft."),
        ("timeout", lambda world: bool(python(world).translate(DOG, "en", "de", 60)), EFFECT, "client only"),
    ),
    *rows(
        "libretranslatepy detect",
        ("q", lambda world: python(world).detect(DOG)[0]["language"] == "en"),
        ("timeout", lambda world: bool(python(world).detect(DOG, 60)), EFFECT, "client only"),
    ),
    *rows(
        "libretranslatepy languages",
        ("", lambda world: len(python(world).languages()) == 3),
        ("timeout", lambda world: len(python(world).languages(60)) == 3, EFFECT, "client only"),
    ),
]
