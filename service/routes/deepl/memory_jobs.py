"""Import and export jobs of /v3/translation_memories: DeepL's way to what PUT /memories and GET /memories/ID/tmx do.

The client creates an import job, uploads the file to the address that the answer states, and asks for the outcome. An
export job states the address of its file. These addresses need no key: nobody can guess them.
"""

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from service.access.eviction import MAX_NAME_LENGTH
from service.errors import BodyTooLarge, InvalidRequest, ServiceError
from service.glossaries.store import glossary_direction
from service.http.admission import while_connected
from service.http.bodies import JSON, BodyReader, body_of
from service.http.fields import Number, TextField
from service.http.problems import MAX_MESSAGE
from service.memories.jobs import JobStatus, MemoryJob
from service.parsers.operations import read_languages
from service.routes.access import AddressAdmission, CallerDependency
from service.routes.deepl.schemas import Body, timestamp
from service.routes.memories import TMX, store_file, tmx_response
from service.services import Services, ServicesDependency

router = APIRouter(tags=["DeepL"], prefix="/v3/translation_memories")

FILE = "/jobs/{job_id}/file"
UPLOAD_NEXT = {"required_action": "Upload the file to upload_url by PUT"}
UPLOAD = {"content": {"application/xml": {"schema": {"type": "string", "format": "binary"}}}, "required": True}


class SourceFile(Body):
    """The TMX file that will be uploaded."""

    file_name: TextField = Field(min_length=1, max_length=MAX_NAME_LENGTH)
    content_length: Number = Field(ge=1, description="Size in bytes.")
    content_type: TextField | None = Field(None, max_length=100)


class ImportParameters(Body):
    """Options of an import."""

    display_name: TextField | None = Field(
        None, max_length=MAX_NAME_LENGTH, description="Name of the memory; the name of the file if left out."
    )


class ImportBody(Body):
    """The file to import."""

    source_file: SourceFile
    parameters: ImportParameters = ImportParameters(display_name=None)


class ImportCreated(BaseModel):
    """An import job. The file must be uploaded by PUT to `upload_url` before the job expires."""

    job_id: str
    upload_url: str
    expires_at: str


class ExportCreated(BaseModel):
    """An export job. `parameters` has `translation_memory_id`."""

    job_id: str
    parameters: dict[str, str]


class JobResult(BaseModel):
    """The outcome of a job. `translation_memory_id` is that of an import, and `download_url` that of an export."""

    status: JobStatus
    status_metadata: dict[str, str] | None = Field(None, description="`required_action`, until the file is uploaded.")
    translation_memory_id: str | None = None
    skipped_segment_count: int | None = None
    download_url: str | None = None
    expires_at: str | None = None
    error: dict[str, str] | None = Field(None, description="`message`, if the import has failed.")


class JobInfo(BaseModel):
    """An import or an export, with one result. `parameters` has `display_name` or `translation_memory_id`."""

    job_id: str
    product: Literal["translation_memory"] = "translation_memory"
    operation: Literal["import", "export"]
    creation_time: str
    updated_time: str
    parameters: dict[str, str]
    source_file: dict[str, str | int] | None = Field(
        None, description="Only of an import: `content_type` and `content_length`."
    )
    results: list[JobResult]


ImportFields = Annotated[ImportBody, Depends(BodyReader(ImportBody, JSON))]


@router.post("/import", status_code=202)
async def create_import(
    caller: CallerDependency, body: ImportFields, request: Request, services: ServicesDependency
) -> ImportCreated:
    """Create a job that imports a TMX file with one target language.

    An import with the name and the languages of a stored memory adds to this memory, as PUT /memories does.
    """
    file, limit = body.source_file, services.settings.max_file_bytes
    if file.content_length > limit:
        raise BodyTooLarge(f"Invalid request: the file exceeds the limit of {limit} bytes")
    name = body.parameters.display_name or file.file_name
    job = MemoryJob(caller.id, name, file.content_length, file.content_type or "application/xml")
    services.memory_jobs.add(job)
    return ImportCreated(job_id=job.id, upload_url=file_url(request, job), expires_at=timestamp(job.expires))


@router.post(
    "/{memory_id}/export",
    status_code=202,
    responses={200: {"model": ExportCreated, "description": "The export exists already."}},
    response_model_exclude_none=True,
)
async def create_export(
    memory_id: str, caller: CallerDependency, response: Response, services: ServicesDependency
) -> ExportCreated:
    """Create a job that exports a memory as TMX."""
    memory = await services.memories.get(caller.id, memory_id)
    job = services.memory_jobs.export(caller.id, memory.id)
    if job:
        response.status_code = 200
    else:
        job = services.memory_jobs.add(MemoryJob(caller.id, memory=memory.id, status=JobStatus.COMPLETED))
    return ExportCreated(job_id=job.id, parameters={"translation_memory_id": memory.id})


@router.get("/jobs/{job_id}", response_model_exclude_none=True)
async def get_job(job_id: str, caller: CallerDependency, request: Request, services: ServicesDependency) -> JobInfo:
    """Return the status of a job."""
    job = services.memory_jobs.owned(caller.id, job_id)
    done = job.status is JobStatus.COMPLETED
    result = JobResult(
        status=job.status,
        status_metadata=UPLOAD_NEXT if job.status is JobStatus.AWAITING_INPUT else None,
        translation_memory_id=job.memory if job.is_import and done else None,
        skipped_segment_count=job.skipped if job.is_import and done else None,
        download_url=None if job.is_import else file_url(request, job),
        expires_at=None if job.is_import else timestamp(job.expires),
        error={"message": job.error} if job.error else None,
    )
    return JobInfo(
        job_id=job.id,
        operation="import" if job.is_import else "export",
        creation_time=timestamp(job.created),
        updated_time=timestamp(job.updated),
        parameters={"display_name": job.name} if job.is_import else {"translation_memory_id": job.memory},
        source_file={"content_type": job.content_type, "content_length": job.size} if job.is_import else None,
        results=[result],
    )


@router.put(FILE, dependencies=[AddressAdmission], openapi_extra={"requestBody": UPLOAD}, response_class=Response)
async def upload_file(job_id: str, request: Request, services: ServicesDependency) -> Response:
    """Upload the file of an import job. If the file cannot be imported, the job states why."""
    job = await job_of_file(services, job_id, is_import=True)
    content = cast(bytes, body_of(request))  # a copy of 10 MB would take the event loop 5 ms
    if len(content) != job.size:
        raise InvalidRequest.listing(f"the file has {len(content)} bytes, but its job states {job.size}")
    async with job.uploading:  # a client that has seen no answer uploads again, perhaps while the first upload is read
        if job.status is not JobStatus.AWAITING_INPUT:
            return Response()
        job.set(JobStatus.PROCESSING)
        try:
            await import_file(job, content, request, services)
        except ClientDisconnect:
            job.set(JobStatus.AWAITING_INPUT)
            raise
        except ServiceError as error:
            if "Retry-After" in error.headers:  # the client uploads the file again
                job.set(JobStatus.AWAITING_INPUT)
                raise
            job.error = error.message[:MAX_MESSAGE]  # it may contain what the file contains
            job.set(JobStatus.FAILED)
        except BaseException:
            job.error = "Internal error"
            job.set(JobStatus.FAILED)
            raise
    return Response()


@router.get(
    FILE,
    name="memory_job_file",
    dependencies=[AddressAdmission],
    responses={200: {"content": {TMX: {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
)
async def download_file(job_id: str, services: ServicesDependency) -> StreamingResponse:
    """Download the file of an export job."""
    job = await job_of_file(services, job_id, is_import=False)
    return tmx_response(await services.memories.get(job.owner, job.memory), services.memories, job.owner)


async def job_of_file(services: Services, id: str, is_import: bool) -> MemoryJob:
    """Return the job whose file is uploaded or downloaded.

    Raises: NotFound if there is none; InvalidKey if the key that created it is valid no more.
    """
    job = services.memory_jobs.file(id, is_import)
    await services.access.check_owner(job.owner)
    return job


async def import_file(job: MemoryJob, content: bytes, request: Request, services: Services) -> None:
    """Store the units of a TMX file. Raises: the errors of PUT /memories; InvalidRequest for several target languages.

    The languages are those of the file.
    """
    reading = services.parsers.run(job.owner, read_languages, job.name, content)
    source, targets = await while_connected(request, reading)
    if len(targets) != 1:
        raise InvalidRequest.listing(f"the file has the target languages {', '.join(targets)}; accepted: one")
    direction = glossary_direction(*services.translations.routes.resolve_supported(source, targets[0]))
    file = f"{job.name.removesuffix('.tmx')}.tmx", content
    memory, job.skipped = await store_file(services, request, job.owner, file, (job.name, direction))
    job.memory = memory.id
    job.set(JobStatus.COMPLETED)


def file_url(request: Request, job: MemoryJob) -> str:
    """Return the address of the file of a job."""
    return str(request.url_for("memory_job_file", job_id=job.id))
