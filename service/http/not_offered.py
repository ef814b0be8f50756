"""Operations of DeepL's API that the service does not offer. The answer is 404 with the reason."""

REASONS = {
    "/v2/write": "Rephrasing and correction of texts are not offered by this service: its models only translate",
    "/v3/style_rules": "Style rules are not offered by this service: its models take no instructions",
    "/v1/quality-evaluation": "The evaluation of given translations is not offered by this service; POST /translate "
    "with quality estimates the quality of its own translations, and `mt-service evaluate` scores a test set",
    "/v2/admin": "The administration of keys and their usage is not offered over HTTP; the operator of this service "
    "uses `mt-service keys`",
    "/v3/voice": "Voice is not offered by this service: it translates texts and documents",
    "/v1/voice": "Voice is not offered by this service: it translates texts and documents",
    "/v1/jobs/voice": "Voice is not offered by this service: it translates texts and documents",
}
"""The reason for each path. It also holds for the paths below."""


def why_not_offered(path: str) -> str:
    """Return why the service does not offer the operations of a path, or "" if nothing is known about the path."""
    return next((reason for start, reason in REASONS.items() if f"{path}/".startswith(f"{start}/")), "")
