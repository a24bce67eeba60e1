// Adam for float32 as one CUDA kernel, written by hand. It is compiled at run
// time by adam_by_hand.cpp; nothing here needs a header.

// One tensor and what Adam keeps for it, in the memory of the GPU.
struct AdamTensor {
  float* param;
  float* exp_avg;
  float* exp_avg_sq;
  const float* grad;
  long long numel;
};

// Kernel parameters hold four kilobytes.
struct AdamTensors {
  AdamTensor at[64];
};

// What is the same for all elements.
struct AdamNumbers {
  float weight1;  // 1 - beta1
  float beta2;
  float weight2;    // 1 - beta2
  float step_size;  // -lr / (1 - beta1^step)
  float correction2_sqrt;
  float eps;
};

// [update]
static __device__ __forceinline__ void update(float& p, float& m, float& v,
                                              float g, const AdamNumbers& n) {
  m = m + n.weight1 * (g - m);
  v = v * n.beta2 + n.weight2 * g * g;
  p = p + n.step_size * m / (sqrtf(v) / n.correction2_sqrt + n.eps);
}
// [update]

// [kernel]
extern "C" __global__ void __launch_bounds__(256)
    adam_by_hand(const __grid_constant__ AdamTensors tensors,
                 const __grid_constant__ AdamNumbers n) {
  const AdamTensor t = tensors.at[blockIdx.y];
  const long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long threads = gridDim.x * (long long)blockDim.x;
  // [kernel]
  // [packs]
  const long long packs = t.numel / 4;
  for (long long i = thread; i < packs; i += threads) {
    float4 p = reinterpret_cast<float4*>(t.param)[i];
    float4 m = reinterpret_cast<float4*>(t.exp_avg)[i];
    float4 v = reinterpret_cast<float4*>(t.exp_avg_sq)[i];
    const float4 g = reinterpret_cast<const float4*>(t.grad)[i];
    update(p.x, m.x, v.x, g.x, n);
    update(p.y, m.y, v.y, g.y, n);
    update(p.z, m.z, v.z, g.z, n);
    update(p.w, m.w, v.w, g.w, n);
    reinterpret_cast<float4*>(t.param)[i] = p;
    reinterpret_cast<float4*>(t.exp_avg)[i] = m;
    reinterpret_cast<float4*>(t.exp_avg_sq)[i] = v;
  }
  // [packs]
  // [tail]
  for (long long i = 4 * packs + thread; i < t.numel; i += threads) {
    update(t.param[i], t.exp_avg[i], t.exp_avg_sq[i], t.grad[i], n);
  }
}
// [tail]
