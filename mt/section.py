"""Base class of the sections of recipes and of the metadata of models."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen section of a recipe or of a model's metadata. Unknown keys and non-finite numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
