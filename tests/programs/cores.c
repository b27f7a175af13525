/* Core files: when one is written, where, and what is in it. Says what is not as core(5) has it; a host whose core_pattern is not `core`
   writes elsewhere and is not looked at. */
#include "check.h"

#include <elf.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/procfs.h>

enum { SECRET_PAGES = 16 };
static char *secret, *omitted, *shared, *untouched;
static int bad;

#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            bad++, printf("not so: %s\n", #condition);                                                                 \
    } while (0)

static int is_plain(void)
{
    char pattern[128] = "", uses[8] = "";
    int file = MUST(open("/proc/sys/kernel/core_pattern", O_RDONLY));
    MUST(read(file, pattern, sizeof pattern - 1));
    close(file);
    file = MUST(open("/proc/sys/kernel/core_uses_pid", O_RDONLY));
    MUST(read(file, uses, sizeof uses - 1));
    close(file);
    return strcmp(pattern, "core\n") == 0 && strcmp(uses, "0\n") == 0;
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    MUST(setrlimit(RLIMIT_CORE, &limit));
}

/* Ends a child by `prepare` and a fault, and tells its status. */
static int crash(void (*prepare)(void), rlim_t limit)
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        set_limit(limit);
        if (prepare)
            prepare();
        *(volatile int *)8 = 1;
    }
    int status;
    MUST(waitpid(child, &status, 0));
    HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    return status;
}

static unsigned char *load(size_t *bytes)
{
    int file = open("core", O_RDONLY);
    if (file < 0)
        return NULL;
    struct stat found;
    MUST(fstat(file, &found));
    *bytes = (size_t)found.st_size;
    unsigned char *core = malloc(*bytes + 1);
    for (size_t done = 0; done < *bytes;) {
        ssize_t more = read(file, core + done, *bytes - done);
        if (more <= 0)
            break;
        done += (size_t)more;
    }
    close(file);
    return core;
}

static Elf64_Phdr *segment_of(unsigned char *core, const void *address)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)core;
    Elf64_Phdr *segments = (Elf64_Phdr *)(core + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && (uint64_t)address - segments[i].p_vaddr < segments[i].p_memsz)
            return &segments[i];
    return NULL;
}

static unsigned char *byte_of(unsigned char *core, const void *address)
{
    Elf64_Phdr *segment = segment_of(core, address);
    uint64_t at = segment ? (uint64_t)address - segment->p_vaddr : 0;
    return segment && at < segment->p_filesz ? core + segment->p_offset + at : NULL;
}

static int count_notes(unsigned char *core, unsigned type, unsigned char **first)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)core;
    Elf64_Phdr *notes = (Elf64_Phdr *)(core + header->e_phoff);
    int count = 0;
    if (notes->p_type != PT_NOTE)
        return -1;
    for (unsigned char *at = core + notes->p_offset, *end = at + notes->p_filesz; at < end;) {
        Elf64_Nhdr *note = (Elf64_Nhdr *)at;
        unsigned char *content = at + sizeof *note + ((note->n_namesz + 3) & ~3u);
        if (note->n_type == type && count++ == 0 && first)
            *first = content;
        at = content + ((note->n_descsz + 3) & ~3u);
    }
    return count;
}

static void map_all(void)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS, rights = PROT_READ | PROT_WRITE;
    secret = mmap(NULL, SECRET_PAGES * 4096, rights, kind, -1, 0);
    /* Neighbours would be one area. */
    MUST(mprotect(mmap(NULL, 4096, rights, kind, -1, 0), 4096, PROT_NONE));
    omitted = mmap(NULL, 8 * 4096, rights, kind, -1, 0);
    MUST(mprotect(mmap(NULL, 4096, rights, kind, -1, 0), 4096, PROT_NONE));
    untouched = mmap(NULL, 4 * 4096, rights, kind, -1, 0);
    shared = mmap(NULL, 2 * 4096, rights, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(secret + 4096, 0x5a, 4096);
    memset(secret + 9 * 4096, 0x5b, 4096);
    memset(omitted, 0x5c, 8 * 4096);
    memset(shared + 4096, 0x5d, 4096);
    MUST(madvise(omitted, 8 * 4096, MADV_DONTDUMP));
}

static void *other(void *ready)
{
    *(volatile int *)ready = 1;
    for (;;)
        pause();
    return NULL;
}
static void with_a_thread(void)
{
    static volatile int ready;
    pthread_t thread;
    pthread_create(&thread, NULL, other, (void *)&ready);
    while (!ready)
        sched_yield();
}

static void whole(void)
{
    if (!is_plain())
        return;
    unlink("core");
    map_all();
    int status = crash(with_a_thread, RLIM_INFINITY);
    HOLDS(WCOREDUMP(status));
    struct stat found = {0};
    HOLDS(stat("core", &found) == 0 && found.st_mode == (S_IFREG | 0600));
    size_t bytes = 0;
    unsigned char *core = load(&bytes);
    if (!core)
        return;
    Elf64_Ehdr *header = (Elf64_Ehdr *)core;
    HOLDS(memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_type == ET_CORE && header->e_machine == EM_X86_64);
    unsigned char *first = NULL;
    HOLDS(count_notes(core, NT_PRSTATUS, &first) == 2);
    struct elf_prstatus *registers = (struct elf_prstatus *)first;
    HOLDS(first && registers->pr_cursig == SIGSEGV && registers->pr_info.si_signo == SIGSEGV && registers->pr_ppid == getpid());
    HOLDS(first && registers->pr_reg[15] == (unsigned long)-1); /* orig_rax: not in a call */
    HOLDS(count_notes(core, NT_FPREGSET, NULL) == 2);
    HOLDS(count_notes(core, NT_PRPSINFO, &first) == 1 && strncmp(((struct elf_prpsinfo *)first)->pr_fname, "cores", 5) == 0);
    HOLDS(count_notes(core, NT_SIGINFO, &first) == 1 && ((siginfo_t *)first)->si_addr == (void *)8);
    HOLDS(count_notes(core, NT_AUXV, &first) == 1 && *(uint64_t *)first != 0);
    HOLDS(count_notes(core, NT_FILE, &first) == 1 && *(uint64_t *)first > 0 && ((uint64_t *)first)[1] == 4096);
    Elf64_Phdr *segment = segment_of(core, secret);
    HOLDS(segment && segment->p_filesz == segment->p_memsz && segment->p_flags == (PF_R | PF_W));
    HOLDS(byte_of(core, secret) && *byte_of(core, secret) == 0);
    HOLDS(byte_of(core, secret + 4096) && *byte_of(core, secret + 8191) == 0x5a);
    HOLDS(byte_of(core, secret + 9 * 4096) && *byte_of(core, secret + 9 * 4096) == 0x5b);
    HOLDS(byte_of(core, shared + 4096) && *byte_of(core, shared + 4096) == 0x5d);
    HOLDS(segment_of(core, omitted) && !byte_of(core, omitted));
    HOLDS(segment_of(core, untouched) != NULL);
    /* This program's own first page: its ELF header. */
    extern const char __executable_start[];
    HOLDS(byte_of(core, __executable_start) && memcmp(byte_of(core, __executable_start), ELFMAG, SELFMAG) == 0);
    HOLDS(byte_of(core, &bad) && *(int *)byte_of(core, &bad) == bad);
    free(core);
    unlink("core");
}

static void limits(void)
{
    if (!is_plain())
        return;
    unlink("core");
    struct stat found;
    HOLDS(!WCOREDUMP(crash(NULL, 0)) && stat("core", &found) < 0);
    HOLDS(!WCOREDUMP(crash(NULL, 4095)) && stat("core", &found) < 0);
    HOLDS(WCOREDUMP(crash(NULL, 20480)) && stat("core", &found) == 0 && found.st_size <= 20480 && found.st_size >= 4096);
    /* What was there is cut off. */
    int file = MUST(open("core", O_WRONLY | O_TRUNC));
    MUST(ftruncate(file, 100 << 20));
    close(file);
    HOLDS(WCOREDUMP(crash(NULL, RLIM_INFINITY)) && stat("core", &found) == 0 && found.st_size < 100 << 20);
    unlink("core");
}

static void not_dumpable(void) { MUST(prctl(PR_SET_DUMPABLE, 0)); }
static void refused(void)
{
    if (!is_plain())
        return;
    unlink("core");
    struct stat found;
    HOLDS(!WCOREDUMP(crash(not_dumpable, RLIM_INFINITY)) && stat("core", &found) < 0);
    int file = MUST(open("other", O_CREAT | O_WRONLY | O_TRUNC, 0600));
    MUST(write(file, "kept", 4));
    close(file);
    /* What the status says then differs among Linux's versions. */
    MUST(symlink("other", "core"));
    crash(NULL, RLIM_INFINITY);
    HOLDS(stat("other", &found) == 0 && found.st_size == 4);
    unlink("core");
    MUST(link("other", "core"));
    crash(NULL, RLIM_INFINITY);
    HOLDS(stat("other", &found) == 0 && found.st_size == 4);
    unlink("core");
    MUST(mkdir("core", 0700));
    crash(NULL, RLIM_INFINITY);
    HOLDS(rmdir("core") == 0);
    MUST(mkfifo("core", 0600));
    crash(NULL, RLIM_INFINITY);
    unlink("core"); /* Linux 6.18 has taken it away */
    unlink("other");
}

static void set_filter(const char *filter)
{
    int file = MUST(open("/proc/self/coredump_filter", O_WRONLY));
    MUST(write(file, filter, strlen(filter)));
    close(file);
}
static void filter(void)
{
    char told[16] = "";
    set_filter("0x7");
    int file = MUST(open("/proc/self/coredump_filter", O_RDONLY));
    MUST(read(file, told, sizeof told - 1));
    close(file);
    printf("filter %s", told);
    set_filter("0x2");
    if (!is_plain())
        return;
    unlink("core");
    map_all();
    HOLDS(WCOREDUMP(crash(NULL, RLIM_INFINITY)));
    size_t bytes = 0;
    unsigned char *core = load(&bytes);
    if (!core)
        return;
    HOLDS(segment_of(core, secret) && !byte_of(core, secret + 4096));
    HOLDS(byte_of(core, shared + 4096) && *byte_of(core, shared + 4096) == 0x5d);
    free(core);
    unlink("core");
}

#define T(name) {#name, name}
static const struct test tests[] = {T(whole), T(limits), T(refused), T(filter)};
CHECK_MAIN(tests)
