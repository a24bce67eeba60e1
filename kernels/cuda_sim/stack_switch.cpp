#include "fusebook/cuda_sim/stack_switch.h"

#if defined(FUSE_OWN_STACK_SWITCH)
// System V ABI for x86-64, 3.2.1: the registers that a called function must preserve
// go onto the stack that is left. MXCSR and the x87 control word are the same on
// every stack.
extern "C" __attribute__((visibility("hidden"))) void fuse_switch_stacks(
    void** left, void* to);
asm(R"(
    .pushsection .text
    .p2align 4
    .globl fuse_switch_stacks
    .hidden fuse_switch_stacks
    .type fuse_switch_stacks, @function
fuse_switch_stacks:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    pushq %r12
    .cfi_adjust_cfa_offset 8
    pushq %r13
    .cfi_adjust_cfa_offset 8
    pushq %r14
    .cfi_adjust_cfa_offset 8
    pushq %r15
    .cfi_adjust_cfa_offset 8
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    .cfi_adjust_cfa_offset -8
    popq %r14
    .cfi_adjust_cfa_offset -8
    popq %r13
    .cfi_adjust_cfa_offset -8
    popq %r12
    .cfi_adjust_cfa_offset -8
    popq %rbx
    .cfi_adjust_cfa_offset -8
    popq %rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size fuse_switch_stacks, .-fuse_switch_stacks
    .popsection
)");
#endif

namespace fuse {

#if defined(FUSE_OWN_STACK_SWITCH)
void begin_stack(StackPlace& place, char* memory, std::size_t bytes,
                 void (*body)()) {
  // As if the body had called: six registers, where to return to, and where the
  // body would return to, so that it begins eight bytes below a multiple of 16.
  void** const end = reinterpret_cast<void**>(memory + bytes);
  void** const top = end - 8;
  for (void** word = top; word < end; ++word) *word = nullptr;
  top[6] = reinterpret_cast<void*>(body);
  place.top = static_cast<void*>(top);
}

void switch_stacks(StackPlace& from, StackPlace& to) {
  fuse_switch_stacks(&from.top, to.top);
}
#else
void begin_stack(StackPlace& place, char* memory, std::size_t bytes,
                 void (*body)()) {
  getcontext(&place.context);
  place.context.uc_stack.ss_sp = memory;
  place.context.uc_stack.ss_size = bytes;
  makecontext(&place.context, body, 0);
}

void switch_stacks(StackPlace& from, StackPlace& to) {
  swapcontext(&from.context, &to.context);
}
#endif

}  // namespace fuse
