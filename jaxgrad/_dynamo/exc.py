"""The errors of traces, as torch._dynamo.exc."""

from __future__ import annotations

from ..export._errors import TorchDynamoException as TorchDynamoException
from ..export._errors import UserError as UserError
from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
