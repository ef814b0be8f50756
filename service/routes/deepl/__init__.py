"""DeepL's contract: /v2, and the glossaries, translation memories and languages of /v3.

DeepL's SDKs work with this service if their `server_url` is the address of the service.
"""

from fastapi import APIRouter

from service.routes.deepl import (
    documents,
    glossaries,
    glossaries_v3,
    languages,
    memories,
    not_offered,
    translate,
    usage,
)

router = APIRouter(tags=["DeepL"])
router.include_router(translate.router)
router.include_router(documents.router)
router.include_router(languages.router)
router.include_router(usage.router)
router.include_router(glossaries.router)
router.include_router(glossaries_v3.router)
router.include_router(memories.router)
router.include_router(not_offered.router)
