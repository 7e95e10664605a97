"""As much of PyTorch as a buffer of masks needs, out of NumPy: engines keep masks in tensors, and PyTorch is several gigabytes."""

from types import SimpleNamespace

import numpy

int32 = numpy.dtype("int32")
float32, float16, bfloat16, float64 = (object() for _ in range(4))
bool = numpy.dtype("bool")
cuda = SimpleNamespace(is_available=lambda: False)


class Tensor(numpy.ndarray):
    def fill_(self, value):
        self[...] = value
        return self

    def numpy(self):
        return self.view(numpy.ndarray)

    def to(self, device, non_blocking=False):
        return self


def full(size, value, dtype, pin_memory=False):
    return numpy.full(size, value, dtype).view(Tensor)


def tensor(values, dtype=None):
    return numpy.array(values, dtype).view(Tensor)
