"""DeepL's dialect: /v2, and of /v3 the glossaries. Its SDKs work with the address of this service as `server_url`."""

from fastapi import APIRouter

from service.routes.deepl import documents, glossaries, languages, multilingual, translate

router = APIRouter(tags=["DeepL"])
router.include_router(translate.router)
router.include_router(documents.router)
router.include_router(languages.router)
router.include_router(glossaries.router)
router.include_router(multilingual.router)
