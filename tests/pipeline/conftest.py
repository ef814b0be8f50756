from tests.kernels.conftest import library as library
