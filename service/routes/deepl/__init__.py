"""DeepL's contract: /v2, and the glossaries, translation memories and languages of /v3.

Its SDKs work with this service's address as `server_url`.
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
