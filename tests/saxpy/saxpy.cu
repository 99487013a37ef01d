// The smallest program that needs a compiler for the device, its headers and the run-time library.
#include <cstdio>
#include <vector>

__global__ void saxpy(int count, float factor, const float *x, float *y) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) {
    y[index] = factor * x[index] + y[index];
  }
}

int main() {
  const int count = 1 << 20;
  const std::size_t size = count * sizeof(float);
  std::vector<float> x(count, 1.0F);
  std::vector<float> y(count, 2.0F);
  float *on_device_x = nullptr;
  float *on_device_y = nullptr;
  if (cudaMalloc(&on_device_x, size) != cudaSuccess ||
      cudaMalloc(&on_device_y, size) != cudaSuccess) {
    std::puts("no device");
    return 1;
  }
  cudaMemcpy(on_device_x, x.data(), size, cudaMemcpyHostToDevice);
  cudaMemcpy(on_device_y, y.data(), size, cudaMemcpyHostToDevice);
  saxpy<<<(count + 255) / 256, 256>>>(count, 2.0F, on_device_x, on_device_y);
  cudaMemcpy(y.data(), on_device_y, size, cudaMemcpyDeviceToHost);
  std::printf("%g\n", y[0]);
  return 0;
}
