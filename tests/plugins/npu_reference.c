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

enum { MOST = 1 << 20 };
static union { int8_t bytes[MOST]; int32_t sums[MOST / 4]; } memory;
static uint64_t written[MOST], used[MOST], copied, multiplied, room;

static uint64_t latest(const uint64_t *times, uint64_t from, uint64_t count, uint64_t least) {
  for (uint64_t i = from; i < from + count; ++i) least = times[i] > least ? times[i] : least;
  return least;
}

static void note(uint64_t *times, uint64_t from, uint64_t count, uint64_t time) {
  for (uint64_t i = from; i < from + count; ++i) times[i] = time;
}

static int load(const uint32_t *f, void *const *regions) {
  const int8_t *source = (const int8_t *)regions[f[0]] + f[1];
  const uint64_t to = f[2], rows = f[3], columns = f[4], count = rows * columns;
  if (to + count > room) return 0;
  for (uint64_t i = 0; i < rows; ++i) memcpy(memory.bytes + to + i * columns, source + i * f[5], columns);
  copied = latest(used, to, count, latest(written, to, count, copied)) + up(count, 16);
  note(written, to, count, copied);
  return 1;
}

static int store(const uint32_t *f, void *const *regions) {
  int32_t *target = (int32_t *)(void *)((uint8_t *)regions[f[1]] + f[2]);
  const uint64_t at = f[0], rows = f[3], columns = f[4], count = 4 * rows * columns;
  if (at + count > room) return 0;
  for (uint64_t i = 0; i < rows; ++i) memcpy(target + i * f[5], memory.bytes + at + 4 * i * columns, 4 * columns);
  copied = latest(written, at, count, copied) + up(count, 16);
  note(used, at, count, copied);
  return 1;
}

static int multiply(const uint32_t *f, uint64_t size) {
  const uint64_t a = f[0], b = f[1], c = f[2], rows = f[3], inner = f[4], columns = f[5], sums = 4 * rows * columns;
  uint64_t start = multiplied;
  if (a + rows * inner > room || b + inner * columns > room || c + sums > room) return 0;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) {
      uint32_t sum = f[6] ? (uint32_t)memory.sums[c / 4 + i * columns + j] : 0;
      for (uint64_t k = 0; k < inner; ++k)
        sum += (uint32_t)((int32_t)memory.bytes[a + i * inner + k] * (int32_t)memory.bytes[b + k * columns + j]);
      memory.sums[c / 4 + i * columns + j] = (int32_t)sum;
    }
  start = latest(written, a, rows * inner, latest(written, b, inner * columns, start));
  start = latest(written, c, sums, latest(used, c, sums, start));
  multiplied = start + up(rows, size) * up(columns, size) * (inner + 2 * size - 2);
  note(used, a, rows * inner, multiplied);
  note(used, b, inner * columns, multiplied);
  note(written, c, sums, multiplied);
  return 1;
}

int32_t npu_execute(const uint8_t *stream, uint64_t bytes, void *const *regions, uint64_t *cycles) {
  static const uint32_t lengths[] = {0, 15, 7, 6, 6};
  static uint32_t words[1 << 16];
  const uint64_t count = bytes / 4;
  int fine = 1;
  if (bytes % 4 || count < 3 || count > sizeof words / 4 || memcmp(stream, "NPU1", 4)) return -1;
  memcpy(words, stream, bytes);
  if (words[2] > MOST) return -2;
  room = words[2];
  copied = multiplied = 0;
  note(written, 0, room, 0);
  note(used, 0, room, 0);
  for (uint64_t at = 3; at < count && fine;) {
    const uint32_t operation = words[at++];
    const uint64_t fields = operation < 5 ? lengths[operation] : 0;
    if (!fields || at + fields > count) return -1;
    if (operation == 1) copied += windows(words + at, regions);
    if (operation == 2) fine = multiply(words + at, words[1]);
    if (operation == 3) fine = load(words + at, regions);
    if (operation == 4) fine = store(words + at, regions);
    at += fields;
  }
  if (cycles) *cycles += copied > multiplied ? copied : multiplied;
  return fine ? 0 : -2;
}
