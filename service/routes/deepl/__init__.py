"""DeepL's contract: /v2, and the glossaries, translation memories and languages of /v3.

DeepL's SDKs work with this service if their `server_url` is the address of the service.
"""

from service.routes.deepl import documents, glossaries, languages, memories, memory_jobs, translate, usage

ROUTERS = (
    translate.router,
    documents.router,
    languages.router,
    usage.router,
    glossaries.bilingual,
    glossaries.multilingual,
    memories.router,
    memory_jobs.router,
)
