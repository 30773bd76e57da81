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
  failed = model_softmax(inputs->x, outputs->output0);
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

static inline float weft_max_float32(float a, float b) { if (a != a) return a; if (b != b) return b; return a > b ? a : b; }

int32_t model_softmax(const float *restrict data, float *restrict softmax) {
  (void)data;
  (void)softmax;
  float greatest[4];
  (void)greatest;
  for (int64_t i0 = 0; i0 < 4; ++i0) {
    greatest[i0] = (-INFINITY);
    for (int64_t k1 = 0; k1 < 8; ++k1) {
      greatest[i0] = weft_max_float32(greatest[i0], data[i0 * 8 + k1]);
    }
  }
  float powers[32];
  (void)powers;
  for (int64_t i0_1 = 0; i0_1 < 4; ++i0_1) {
    for (int64_t i1 = 0; i1 < 8; ++i1) {
      powers[i0_1 * 8 + i1] = expf((data[i0_1 * 8 + i1] - greatest[i0_1]));
    }
  }
  float total[4];
  (void)total;
  for (int64_t i0_2 = 0; i0_2 < 4; ++i0_2) {
    total[i0_2] = 0.0f;
    for (int64_t k1_1 = 0; k1_1 < 8; ++k1_1) {
      total[i0_2] = (total[i0_2] + powers[i0_2 * 8 + k1_1]);
    }
  }
  for (int64_t i0_3 = 0; i0_3 < 4; ++i0_3) {
    for (int64_t i1_1 = 0; i1_1 < 8; ++i1_1) {
      softmax[i0_3 * 8 + i1_1] = (powers[i0_3 * 8 + i1_1] * (1.0f / total[i0_3]));
    }
  }
  return 0;
}
