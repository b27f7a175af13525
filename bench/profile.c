/* A QEMU plugin: how often each instruction of the guest ran, and how often it loaded or stored. bench/profile.py builds and
 * loads it: the instruction counter and the memory reference counter of the Quamachine (SOSP'89 6.1).
 *
 * At the end it writes lines "address count references" (hexadecimal, decimals) to the file named by out=FILE. The few declarations
 * below are those of QEMU's plugin interface, version 1 (qemu-plugin.h, QEMU 7.2), which Debian does not package. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
/* Loads and stores together: QEMU 7.2 takes them for each other when they are asked for alone. */
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *, enum qemu_plugin_mem_rw, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
int qemu_plugin_version = 1;

#define SLOTS (1u << 20)
static struct count { uint64_t address, count, references; } counts[SLOTS];
static const char *out;

static struct count *find(uint64_t address) {
    for (uint32_t slot = (uint32_t)(address * 0x9E3779B97F4A7C15u >> 44);; slot++) {
        struct count *found = &counts[slot & (SLOTS - 1)];
        if (found->address == address || !found->address) {
            found->address = address;
            return found;
        }
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct count *count = find(qemu_plugin_insn_vaddr(insn));
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &count->count, 1);
        qemu_plugin_register_vcpu_mem_inline(insn, QEMU_PLUGIN_MEM_RW, QEMU_PLUGIN_INLINE_ADD_U64, &count->references, 1);
    }
}

static void done(qemu_plugin_id_t id, void *data) {
    FILE *file = fopen(out, "w");
    if (!file) return;
    for (struct count *at = counts; at < counts + SLOTS; at++)
        if (at->count)
            fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", at->address, at->count, at->references);
    fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) out = argv[i] + 4;
    if (!out) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, done, NULL);
    return 0;
}
