/* A plugin for QEMU that counts instructions. At every sched_yield of the program, which is its mark, it writes to stderr how
 * many there were since the last one. Written for interface 1, of QEMU 4.2 to 8.2, whose header Debian does not ship. */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

enum { SCHED_YIELD = 124 }; /* of Linux on aarch64 */

struct qemu_plugin_tb;
typedef void translated(uint64_t id, struct qemu_plugin_tb *block);
typedef void executed(unsigned cpu, void *data);
typedef void called(uint64_t id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed *callback, int flags, void *data);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, called *callback);

static uint64_t count;

static void add(unsigned cpu, void *instructions) { count += (uintptr_t)instructions; }

static void watch(uint64_t id, struct qemu_plugin_tb *block)
{
    qemu_plugin_register_vcpu_tb_exec_cb(block, add, 0, (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void cut(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                uint64_t f, uint64_t g, uint64_t h)
{
    if (number == SCHED_YIELD) {
        fprintf(stderr, "%" PRIu64 "\n", count);
        count = 0;
    }
}

EXPORT int qemu_plugin_version = 1;

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, watch);
    qemu_plugin_register_vcpu_syscall_cb(id, cut);
    return 0;
}
