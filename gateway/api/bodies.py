"""What the bodies of the control plane have in common."""

from pydantic import BaseModel, ConfigDict


class AskedBody(BaseModel):
    """A body that a path of the control plane takes. Members that it does not know are refused.

    It is built at once, also where building is put off (`cli.sparing`): FastAPI makes an adapter of it with settings
    that pydantic warns of, and keeps that quiet only while it makes it.
    """

    model_config = ConfigDict(extra="forbid", defer_build=False)
