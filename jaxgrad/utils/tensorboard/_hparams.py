"""Records of hyperparameters and of the names of metrics."""

from __future__ import annotations

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)

from ...tape.tensor import Tensor

# by type the field of a value, and PyTorch's kind of it
_KINDS = {
    bool: ("bool_value", "DATA_TYPE_BOOL"),
    int: ("number_value", "DATA_TYPE_FLOAT64"),
    float: ("number_value", "DATA_TYPE_FLOAT64"),
    str: ("string_value", "DATA_TYPE_STRING"),
}


def hparams(values: dict, metrics: dict, domains: dict | None = None) -> tuple[Summary, ...]:
    """The records of the experiment, of the start and of the end of a session.

    values: hyperparameters by name: numbers, bools, texts, tensors of one element, None. metrics:
    results by name. domains: for some hyperparameters a list of all values that they take.
    Raises TypeError and ValueError for others.
    """
    domains = domains or {}
    for name, argument in {"hparam_dict": values, "metric_dict": metrics}.items():
        if not isinstance(argument, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    started, described = SessionStartInfo(), []
    for name, value in values.items():
        if value is None:
            continue
        value = value.item() if isinstance(value, Tensor) else value
        field, kind = _kind(name, value)
        setattr(started.hparams[name], field, value)
        domain = _domain(name, value, domains[name], field) if name in domains else None
        described.append(
            api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kind), domain_discrete=domain)
        )
    named = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics]
    experiment = api_pb2.Experiment(hparam_infos=described, metric_infos=named)
    ended = SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    return (
        _record(metadata.EXPERIMENT_TAG, experiment=experiment),
        _record(metadata.SESSION_START_INFO_TAG, session_start_info=started),
        _record(metadata.SESSION_END_INFO_TAG, session_end_info=ended),
    )


def _kind(name, value):
    for type_, entry in _KINDS.items():
        if isinstance(value, type_):
            return entry
    raise ValueError(
        f"value should be one of int, float, str, bool, or torch.Tensor: {name!r} is of type "
        f"{type(value).__name__}"
    )


def _domain(name, value, domain, field) -> struct_pb2.ListValue:
    if not isinstance(domain, list) or not all(isinstance(entry, type(value)) for entry in domain):
        raise TypeError(
            f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
            f"hparam_dict[{name}]."
        )
    return struct_pb2.ListValue(values=[struct_pb2.Value(**{field: entry}) for entry in domain])


def _record(tag, **content) -> Summary:
    written = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    data = SummaryMetadata.PluginData(
        plugin_name=metadata.PLUGIN_NAME, content=written.SerializeToString()
    )
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=data))])
