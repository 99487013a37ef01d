// What can be built and run without a compiler for the device, and without a device.
#include <cstdio>

#include <cuda_runtime_api.h>
#include <curand.h>

int main() {
  int runtime = 0;
  int random = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess ||
      curandGetVersion(&random) != CURAND_STATUS_SUCCESS) {
    return 1;
  }
  std::printf("runtime %d, curand %d\n", runtime, random);
  return 0;
}
