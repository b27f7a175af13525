/* Memory calls that need neither signals nor processes: results and errno of each, as on Linux for root. */
#include "check.h"

#include <sys/shm.h>
#include <asm/prctl.h>

#define PAGE 4096L
#define MAPS(...)                                                                                                      \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        char *maps_at = mmap(__VA_ARGS__);                                                                             \
        printf("%s -> %s\n", #__VA_ARGS__, maps_at == MAP_FAILED ? failing(-1) : "ok");                                \
        maps_at;                                                                                                       \
    })
#define MOVES(...) printf("%s -> %s\n", #__VA_ARGS__, mremap(__VA_ARGS__) == MAP_FAILED ? failing(-1) : "ok")
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

static char *map(long pages)
{
    char *at = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);
    MUST(at == MAP_FAILED ? -1 : 0);
    return at;
}

static int scratch(long bytes)
{
    int fd = MUST(open("/tmp/mm_calls", O_RDWR | O_CREAT | O_TRUNC, 0600));
    char page[PAGE];
    memset(page, 'f', PAGE);
    for (long i = 0; i < bytes; i += PAGE)
        MUST(write(fd, page, PAGE));
    return fd;
}

static void order_of_map_errors(void)
{
    int fd = scratch(2 * PAGE), reader = MUST(open("/tmp/mm_calls", O_RDONLY)), writer = MUST(open("/tmp/mm_calls", O_WRONLY));
    int folder = MUST(open("/tmp", O_RDONLY)), path = MUST(open("/tmp", O_PATH)), null = MUST(open("/dev/null", O_RDWR));
    int full = MUST(open("/dev/full", O_RDWR));
    MAPS(NULL, 0, PROT_READ, MAP_PRIVATE, 99, 0);
    MAPS(NULL, 0, PROT_READ, MAP_PRIVATE, 99, 5);
    MAPS(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0);
    MAPS(NULL, 0, PROT_READ, 0, fd, 0);
    MAPS(NULL, PAGE, PROT_READ, 0, fd, 0);
    MAPS(NULL, PAGE, PROT_READ, 0, writer, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, path, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, folder, 0);
    MAPS(NULL, -1, PROT_READ, MAP_PRIVATE, folder, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, null, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, full, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, writer, 0);
    MAPS(NULL, PAGE, PROT_NONE, MAP_PRIVATE, writer, 0);
    MAPS(NULL, PAGE, PROT_WRITE, MAP_SHARED, writer, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED, reader, 0);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE, reader, 0);
    char *shared = MAPS(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
    TRY(mprotect(shared, PAGE, RW));
    MAPS(NULL, PAGE, RW, MAP_SHARED_VALIDATE, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED_VALIDATE | 0x2000000, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_STACK, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE | MAP_GROWSDOWN, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    MAPS(NULL, PAGE, RW, ANON | MAP_GROWSDOWN | MAP_STACK, -1, 0);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE, fd, 0x7ffffffffffff000);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE, fd, 0x7fffffffffffe000);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE, fd, -PAGE);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE, folder, -PAGE);
    MAPS(NULL, PAGE, 0xffff, ANON, -1, 0);
    MAPS(NULL, PAGE, RW, ANON, 77, 0);
    MAPS(NULL, PAGE, RW, ANON, -1, 0x123);
    MAPS(NULL, PAGE, RW, ANON | MAP_LOCKED, -1, 0);
    MAPS(NULL, PAGE, RW, ANON | MAP_POPULATE, -1, 0);
    MAPS(NULL, PAGE, RW, ANON | MAP_HUGETLB, -1, 0);
    MAPS(NULL, PAGE, RW, ANON | MAP_HUGETLB | (13 << 26), -1, 0);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE | MAP_HUGETLB, fd, 0);
    MAPS(NULL, PAGE, RW, MAP_PRIVATE | MAP_HUGETLB, 99, 0);
    MAPS((void *)12345, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    MAPS((void *)12345, PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MAPS((void *)0x7ffffffff000, PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MAPS(NULL, 1L << 40, PROT_READ, ANON, -1, 0);
    MAPS(NULL, 1L << 46, RW, ANON, -1, 0);
    unlink("/tmp/mm_calls");
}

static void kinds_of_map(void)
{
    int zero = MUST(open("/dev/zero", O_RDWR));
    char *at = MAPS(NULL, PAGE, RW, MAP_PRIVATE, zero, 0);
    at[0] = 1;
    at = MAPS(NULL, PAGE, RW, MAP_SHARED, zero, 0);
    at[0] = 1;
    at = MAPS(NULL, PAGE, RW, MAP_PRIVATE, zero, 16 * PAGE);
    at = mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0);
    printf("low %d\n", (unsigned long)at >= 1 << 30 && (unsigned long)at < 2ul << 30);
    char *next = mmap(NULL, 3 * PAGE, RW, ANON | MAP_32BIT, -1, 0);
    printf("low %d\n", (unsigned long)next < 2ul << 30);
    MAPS(NULL, 3L << 30, PROT_READ, ANON | MAP_32BIT | MAP_NORESERVE, -1, 0);
    char *hint = mmap((void *)0x30000000, PAGE, RW, ANON | MAP_32BIT, -1, 0);
    printf("hint %lx\n", (long)hint);
    at = mmap(NULL, 4 * PAGE, RW, ANON | MAP_POPULATE, -1, 0);
    unsigned char core[4];
    SHOW(mincore(at, 4 * PAGE, core));
    printf("%d %d %d %d\n", core[0] & 1, core[1] & 1, core[2] & 1, core[3] & 1);
}

static void rights(void)
{
    char *at = map(4);
    TRY(mprotect(at, PAGE, PROT_READ | 8));
    TRY(mprotect(at, PAGE, PROT_READ | 16));
    TRY(mprotect(at, 0, 16));
    TRY(mprotect(at + 1, 0, PROT_READ));
    TRY(mprotect(at, -PAGE, 16));
    TRY(mprotect(at, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP));
    TRY(mprotect(at, PAGE, PROT_READ | PROT_GROWSUP));
    TRY(mprotect(at, PAGE, PROT_READ | PROT_GROWSDOWN));
    TRY(mprotect((void *)0x20000, PAGE, PROT_READ | PROT_GROWSDOWN));
    TRY(mprotect((void *)0x20000, PAGE, PROT_READ | PROT_GROWSUP));
    TRY(mprotect((void *)0x20000, PAGE, PROT_READ));
    TRY(syscall(SYS_pkey_mprotect, at, PAGE, PROT_READ, -1));
    TRY(syscall(SYS_pkey_mprotect, at, PAGE, PROT_READ, 3));
    TRY(syscall(SYS_pkey_mprotect, at, 0, PROT_READ, 3));
    TRY(syscall(SYS_pkey_alloc, 1, 0));
    TRY(syscall(SYS_pkey_alloc, 0, 8));
    TRY(syscall(SYS_pkey_alloc, 0, 0));
    TRY(syscall(SYS_pkey_free, 1));
}

static void moves(void)
{
    char *at = map(6);
    memset(at, 'm', 6 * PAGE);
    MOVES(at, PAGE, PAGE, 8);
    MOVES(at + 5, PAGE, PAGE, 8);
    MOVES(at + 5, PAGE, PAGE, 0);
    MOVES(at, PAGE, 1L << 62, 0);
    MOVES(at, PAGE, -1, MREMAP_MAYMOVE);
    MOVES(at, PAGE, 1L << 40, MREMAP_MAYMOVE);
    MOVES(at, PAGE, PAGE, MREMAP_DONTUNMAP, 0);
    MOVES(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    MOVES(at, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, at + 5);
    MOVES(at, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, at);
    MOVES(at, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, 0xffff800000000000);
    MOVES(at, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, 0x7ffffffff000);
    MOVES(at, 0, PAGE, MREMAP_MAYMOVE);
    MOVES(at, 7 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    char *moved = mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    printf("left behind %d moved %c\n", at[0], moved[PAGE]);
    char *shared = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 's';
    char *twin = mremap(shared, 0, 2 * PAGE, MREMAP_MAYMOVE);
    twin[PAGE] = 't';
    printf("twin %c %c\n", twin[0], shared[PAGE]);
    shared = mmap(NULL, 3 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++)
        shared[i * PAGE] = (char)('0' + i);
    TRY(remap_file_pages(shared, PAGE, 0, 2, 0));
    TRY(remap_file_pages(shared + PAGE, PAGE, PROT_READ, 2, 0));
    TRY(remap_file_pages(at, PAGE, 0, 0, 0));
    TRY(remap_file_pages(shared, 0, 0, 0, 0));
    printf("%c%c%c\n", shared[0], shared[PAGE], shared[2 * PAGE]);
}

static void advice(void)
{
    char *at = map(6), *shared = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(at, 'k', 6 * PAGE);
    memset(shared, 'k', 2 * PAGE);
    for (int i = 0; i <= 23; i++)
        if (i != MADV_NORMAL && i != MADV_REMOVE && i != MADV_HUGEPAGE && i != MADV_NOHUGEPAGE && i != 12 && i != 13) {
            errno = 0;
            int result = madvise(at, PAGE, i);
            printf("%d -> %s\n", i, failing(result));
        }
    TRY(madvise(at, 0, 9999));
    TRY(madvise(at + 1, 0, MADV_NORMAL));
    TRY(madvise(at, 0, MADV_DONTNEED));
    TRY(madvise(at, -1, MADV_DONTNEED));
    TRY(madvise(at, -PAGE, MADV_DONTNEED));
    munmap(at + 3 * PAGE, PAGE);
    memset(at, 'k', 3 * PAGE);
    TRY(madvise(at, 6 * PAGE, MADV_DONTNEED));
    printf("%d %d\n", at[0], at[5 * PAGE]);
    TRY(madvise(at, 6 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(at, 6 * PAGE, MADV_NORMAL));
    TRY(madvise(shared, PAGE, MADV_FREE));
    TRY(madvise(shared, PAGE, MADV_WIPEONFORK));
    TRY(madvise(shared, PAGE, MADV_DONTNEED));
    printf("%c\n", shared[0]);
    TRY(madvise(shared, PAGE, MADV_REMOVE));
    printf("%d %c\n", shared[0], shared[PAGE]);
    TRY(madvise(at, PAGE, MADV_REMOVE));
    mprotect(at, PAGE, PROT_NONE);
    TRY(madvise(at, PAGE, MADV_POPULATE_READ));
    TRY(madvise(at, PAGE, MADV_POPULATE_WRITE));
}

static void sync_and_lock(void)
{
    char *at = map(4);
    unsigned char core[8];
    at[0] = at[PAGE] = 1;
    munmap(at + 2 * PAGE, PAGE);
    TRY(msync(at, PAGE, MS_SYNC));
    TRY(msync(at, PAGE, 0));
    TRY(msync(at, PAGE, MS_SYNC | MS_ASYNC));
    TRY(msync(at, PAGE, 8));
    TRY(msync(at + 1, PAGE, MS_SYNC));
    TRY(msync(at, 4 * PAGE, MS_ASYNC));
    TRY(msync(at, -PAGE, MS_ASYNC));
    TRY(msync(at, 0, MS_ASYNC));
    TRY(mincore(at, 2 * PAGE, core));
    printf("%d %d\n", core[0], core[1]);
    TRY(mincore(at, 4 * PAGE, core));
    TRY(mincore(at + 1, PAGE, core));
    TRY(mincore(at, 0, core));
    TRY(mincore(at, PAGE, (void *)1));
    TRY(mincore(at, PAGE, (void *)-1));
    TRY(mincore(at, -1, core));
    TRY(mincore((void *)0xffff800000000000, PAGE, core));
    TRY(mlock(at, 2 * PAGE));
    TRY(mlock(at + 7, 1));
    TRY(mlock(at, 4 * PAGE));
    TRY(mlock(at, -PAGE));
    TRY(mlock(at, 0));
    TRY(munlock(at, PAGE));
    TRY(munlock(at, 4 * PAGE));
    TRY(syscall(SYS_mlock2, at, PAGE, 1));
    TRY(syscall(SYS_mlock2, at, PAGE, 2));
    TRY(mlockall(0));
    TRY(mlockall(8));
    TRY(mlockall(4));
    TRY(mlockall(MCL_CURRENT | 4));
    TRY(mlockall(MCL_CURRENT));
    TRY(munlockall());
}

static void thread_bases(void)
{
    unsigned long word;
    TRY(syscall(SYS_arch_prctl, ARCH_GET_FS, &word));
    TRY(syscall(SYS_arch_prctl, ARCH_GET_FS, 1));
    TRY(syscall(SYS_arch_prctl, ARCH_SET_GS, -1));
    TRY(syscall(SYS_arch_prctl, ARCH_SET_GS, 0x7ffffffff000));
    TRY(syscall(SYS_arch_prctl, ARCH_SET_GS, 0x1234));
    TRY(syscall(SYS_arch_prctl, ARCH_GET_GS, &word));
    printf("%lx\n", word);
    SHOW(syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0));
    TRY(syscall(SYS_arch_prctl, 0x77777, 0));
}

static void segments(void)
{
    struct shmid_ds status;
    int id = MUST(shmget(IPC_PRIVATE, 2 * PAGE + 5, IPC_CREAT | 0600)), keyed = MUST(shmget(0x5159, PAGE, IPC_CREAT | 0640));
    TRY(shmget(0x5160, PAGE, 0) == -1 ? -1 : 0);
    TRY(shmget(0x5159, PAGE, IPC_CREAT | IPC_EXCL) == -1 ? -1 : 0);
    TRY(shmget(0x5159, 2 * PAGE, 0) == -1 ? -1 : 0);
    TRY(shmget(0x5159, 0, 0) == keyed ? 0 : -1);
    TRY(shmget(0x5161, 0, IPC_CREAT) == -1 ? -1 : 0);
    char *at = shmat(id, NULL, 0), *other = shmat(id, NULL, SHM_RDONLY);
    at[2 * PAGE] = 'x';
    printf("%c\n", other[2 * PAGE]);
    SHOW(shmctl(id, IPC_STAT, &status));
    printf("%zu %lu %o %d\n", status.shm_segsz, status.shm_nattch, status.shm_perm.mode, status.shm_cpid == getpid());
    TRY(mprotect(other, PAGE, RW));
    TRY(shmat(99999, NULL, 0));
    TRY(shmat(-1, NULL, 0));
    TRY(shmat(id, at, 0));
    TRY(shmat(id, at + 5, 0));
    TRY(shmat(id, NULL, SHM_REMAP));
    TRY(shmdt(at + 5));
    TRY(shmdt(at + PAGE));
    SHOW(shmctl(id, IPC_RMID, NULL));
    SHOW(shmctl(id, IPC_STAT, &status));
    printf("%lu %o\n", status.shm_nattch, status.shm_perm.mode);
    munmap(at + PAGE, PAGE);
    SHOW(shmctl(id, IPC_STAT, &status));
    printf("%lu\n", status.shm_nattch);
    SHOW(shmdt(at));
    TRY(shmdt(at));
    SHOW(shmdt(other));
    TRY(shmctl(id, IPC_STAT, &status));
    TRY(shmctl(keyed, 99, NULL));
    TRY(shmctl(keyed, IPC_STAT, (void *)1));
    TRY(shmctl(keyed, IPC_RMID, NULL));
    TRY(shmctl(keyed, IPC_RMID, NULL));
}

static void heap(void)
{
    char *start = (char *)syscall(SYS_brk, 0);
    char *top = (char *)syscall(SYS_brk, start + 100 * PAGE);
    printf("%ld\n", (long)(top - start));
    struct rlimit limit = {50 * PAGE, 50 * PAGE};
    MUST(setrlimit(RLIMIT_DATA, &limit));
    printf("%d\n", (char *)syscall(SYS_brk, start + 400 * PAGE) == top);
    printf("%d\n", (char *)syscall(SYS_brk, start) == start);
    TRY(mmap(NULL, 200 * PAGE, RW, ANON, -1, 0));
    TRY(mmap(NULL, 200 * PAGE, PROT_READ, ANON, -1, 0) == MAP_FAILED ? -1 : 0);
    struct rlimit space = {20 << 20, 20 << 20};
    MUST(setrlimit(RLIMIT_AS, &space));
    TRY(mmap(NULL, 40 << 20, PROT_READ, ANON, -1, 0));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(order_of_map_errors), T(kinds_of_map), T(rights), T(moves), T(advice), T(sync_and_lock), T(thread_bases), T(segments), T(heap),
};
CHECK_MAIN(tests)
