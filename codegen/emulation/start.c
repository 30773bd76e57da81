/* Start-up of a bare Cortex-M image under an emulator: vector table, memory, floating-point unit, semihosting. */
#include <stdint.h>

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;
int main(void);

static int32_t semihost(uint32_t operation, const void *argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return (int32_t)r0;
}

void board_write(const char *text) { (void)semihost(0x04, text); }

void board_exit(int32_t code) {
  /* SYS_EXIT_EXTENDED: ADP_Stopped_ApplicationExit with the code. */
  const uint32_t block[2] = {0x20026, (uint32_t)code};
  (void)semihost(0x20, block);
  for (;;) { }
}

static void fault(void) { board_exit(99); }

static void reset(void) {
  const uint32_t *from = &__data_load;
  for (uint32_t *to = &__data_start; to < &__data_end; ++to) *to = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end; ++to) *to = 0;
#if defined(__ARM_FP)
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: full access to the floating-point unit */
  __asm__ volatile("dsb\n isb");
#endif
  board_exit(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
  &__stack_top, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
  (const void *)fault,
};
