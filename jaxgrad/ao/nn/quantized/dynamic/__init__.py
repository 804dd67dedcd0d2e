"""torch.ao.nn.quantized.dynamic: layers on numbers that quantize their input at each call."""

from .....names.not_provided import names_of
from .linear import Linear
from .recurrent import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]

__getattr__, __dir__ = names_of(__name__)
