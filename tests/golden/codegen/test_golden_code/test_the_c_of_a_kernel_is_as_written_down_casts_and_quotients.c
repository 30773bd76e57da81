#include "model_ops.h"

extern const char model_no_constants;

#include "model.h"
#include "model_ops.h"

#include <math.h>
#include <string.h>


int32_t model_run(const struct model_inputs *inputs, struct model_outputs *outputs,
    struct model_workspaces *workspaces, struct model_devices *devices) {
  int32_t failed = 0;
  uint8_t *workspace = workspaces ? workspaces->workspace : 0;
  (void)inputs; (void)outputs; (void)devices; (void)failed; (void)workspace;
  failed = model_main(inputs->x, inputs->f, outputs->output0);
  if (failed) return failed;
  return failed;
}

const char *model_message(int32_t code) {
  switch (code) {
  default: return "";
  }
}

#include "model_ops.h"

#include <math.h>
#include <string.h>

static inline int32_t weft_int32_from_float32(float a) { if (a != a) return 0; if (a <= -2147483648.0f) return (int32_t)(-2147483647 - 1); if (a >= 2147483647.0f) return 2147483647; return (int32_t)a; }
static inline int32_t weft_floordiv_int32(int32_t a, int32_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int32_t)(0 - (uint32_t)a);
  { int32_t q = (int32_t)(a / b); return (int32_t)(((a % b != 0) && ((a < 0) != (b < 0))) ? q - 1 : q); }
}
static inline int32_t weft_floormod_int32(int32_t a, int32_t b) {
  if (b == 0) return 0;
  if (b == -1) return 0;
  { int32_t r = (int32_t)(a % b); return (int32_t)((r != 0 && ((r < 0) != (b < 0))) ? r + b : r); }
}

int32_t model_main(const int32_t *restrict x, const float *restrict f, int8_t *restrict y) {
  (void)x;
  (void)f;
  (void)y;
  for (int32_t i = 0; i < 5; ++i) {
    y[i] = ((int8_t)((uint32_t)((int8_t)weft_floordiv_int32(x[i], weft_int32_from_float32(f[i]))) + (uint32_t)((int8_t)weft_floormod_int32(x[i], 3))));
  }
  return 0;
}
