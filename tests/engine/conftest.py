from tests.kernels.conftest import library as library
from tests.kernels.conftest import target_library as target_library
