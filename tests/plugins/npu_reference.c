/* The NPU once more, in C and written apart from the model: what a simulation of the hardware would put in its place. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint64_t up(uint64_t value, uint64_t step) { return (value + step - 1) / step; }

static uint64_t windows(const uint32_t *f, void *const *regions) {
  const int8_t *image = (const int8_t *)regions[f[0]] + f[1];
  int8_t *out = (int8_t *)regions[f[2]] + f[3];
  const int64_t channels = f[4], height = f[5], width = f[6], kh = f[7], kw = f[8], oh = f[13], ow = f[14];
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < kh; ++i)
      for (int64_t j = 0; j < kw; ++j)
        for (int64_t y = 0; y < oh; ++y)
          for (int64_t x = 0; x < ow; ++x) {
            const int64_t row = y * f[9] + i - f[11], column = x * f[10] + j - f[12];
            const int inside = row >= 0 && row < height && column >= 0 && column < width;
            *out++ = (int8_t)(inside ? image[(c * height + row) * width + column] : 0);
          }
  return up((uint64_t)(channels * height * width + channels * kh * kw * oh * ow), 16);
}

static int64_t multiply(const uint32_t *f, void *const *regions, uint64_t size, uint64_t memory) {
  const int8_t *a = (const int8_t *)regions[f[0]] + f[1], *b = (const int8_t *)regions[f[2]] + f[3];
  int32_t *c = (int32_t *)(void *)((uint8_t *)regions[f[4]] + f[5]);
  const uint64_t rows = f[6], inner = f[7], columns = f[8];
  const uint64_t operands = rows * inner + inner * columns, sums = 4 * rows * columns;
  if (operands + sums > memory) return -1;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) {
      uint32_t sum = f[12] ? (uint32_t)c[i * f[11] + j] : 0;
      for (uint64_t k = 0; k < inner; ++k) sum += (uint32_t)((int32_t)a[i * f[9] + k] * (int32_t)b[k * f[10] + j]);
      c[i * f[11] + j] = (int32_t)sum;
    }
  return (int64_t)(up(rows, size) * up(columns, size) * (inner + 2 * size - 2)
                   + up(operands + sums * (f[12] ? 2 : 1), 16));
}

int32_t npu_execute(const uint8_t *stream, uint64_t bytes, void *const *regions, uint64_t *cycles) {
  uint32_t words[8192];
  const uint64_t count = bytes / 4;
  if (bytes % 4 || count < 3 || count > 8192 || memcmp(stream, "NPU1", 4)) return -1;
  memcpy(words, stream, bytes);
  for (uint64_t at = 3; at < count;) {
    const uint32_t operation = words[at++];
    const uint64_t fields = operation == 1 ? 15 : operation == 2 ? 13 : 0;
    int64_t spent;
    if (!fields || at + fields > count) return -1;
    spent = operation == 1 ? (int64_t)windows(words + at, regions) : multiply(words + at, regions, words[1], words[2]);
    if (spent < 0) return -2;
    if (cycles) *cycles += (uint64_t)spent;
    at += fields;
  }
  return 0;
}
