// The program of the tests in tests.nix.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

int main() {
    const int n = 1024;
    float *x = nullptr, *y = nullptr, result = 0;
    cudaError_t error = cudaMallocManaged(&x, n * sizeof(float));
    if (!error) error = cudaMallocManaged(&y, n * sizeof(float));
    if (!error) {
        for (int i = 0; i < n; ++i) x[i] = y[i] = float(i);
        saxpy<<<n / 256, 256>>>(n, 2, x, y);
        error = cudaGetLastError();
    }
    if (!error) error = cudaDeviceSynchronize();
    if (!error) result = y[n - 1];
    std::printf("error %d (%s), result %g\n", int(error), cudaGetErrorString(error), result);
    if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) return 0;
    return error || result != 3 * (n - 1);
}
