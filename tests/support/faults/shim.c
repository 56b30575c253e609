/* Preloaded into a process: what it does to files below one folder is counted, and made to fail.
 *
 * The folder is in FAULT_ROOT. What is to happen stands in a small file that is mapped into memory,
 * named by FAULT_CONTROL: whoever writes it (shim.py) commands this process and those it forks,
 * while they run. A process that has no such file is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NOTHING, ONCE, FROM_THERE_ON, END, TEAR };      /* what happens at the call in question */
enum { WRITE = 1, SYNC = 2, CREATE = 4, NAME = 8, OPEN = 16 };  /* the kinds of calls */

struct control {
    int what, nth, error, kinds;
    int calls;   /* of these kinds, so far */
    int faults;  /* that were made, so far */
    char last[116]; /* the call that was made to fail last */
    long long clock; /* by how many seconds this process's clock is wrong */
};

static volatile struct control *control;
static char root[PATH_MAX];
static size_t root_length;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAULT_CONTROL"), *folder = getenv("FAULT_ROOT");
    if (!file || !folder || !realpath(folder, root)) return;
    root_length = strlen(root);
    int descriptor = open(file, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED,
                        descriptor, 0);
    close(descriptor);
    if (mapped != MAP_FAILED) control = mapped;
}

static int is_below(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* The whole path, as far as it is known, into `whole`; and whether it is below the folder. */
static int is_below_at(int folder, const char *path, char *whole) {
    char link[64];
    whole[0] = 0;
    if (path[0] != '/') {
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, whole, PATH_MAX - 1);
        if (length < 0) return 0;
        whole[length] = '/';
        whole[length + 1] = 0;
    }
    strncat(whole, path, PATH_MAX - 1);
    return is_below(whole);
}

static int is_descriptor_below(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

/* Whether the call that is about to be made is to fail; does not return when all is to end. */
static int is_struck(int kind, const char *call, const char *path) {
    if (!(control->kinds & kind)) return 0;
    int number = __sync_add_and_fetch((int *)&control->calls, 1);
    int what = control->what;
    if (what == NOTHING) return 0;
    if (what == FROM_THERE_ON ? number < control->nth : number != control->nth) return 0;
    __sync_add_and_fetch((int *)&control->faults, 1);
    snprintf((char *)control->last, sizeof control->last, "%s %s", call, path + root_length);
    if (what == END || (what == TEAR && kind != WRITE)) _exit(99);
    errno = control->error;
    return 1;
}

static int strikes_path(int kind, const char *call, int folder, const char *path) {
    char whole[2 * PATH_MAX];
    int saved = errno;
    int is_ours = control && path && is_below_at(folder, path, whole);
    errno = saved;
    return is_ours && is_struck(kind, call, whole);
}

static int strikes(int kind, const char *call, int descriptor) {
    char whole[PATH_MAX];
    int saved = errno;
    int is_ours = control && is_descriptor_below(descriptor, whole);
    errno = saved;
    return is_ours && is_struck(kind, call, whole);
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A torn write: some of the bytes, and then the end. */
#define TORN(some) if (control->what == TEAR) { some; _exit(99); }

ssize_t write(int fd, const void *bytes, size_t size) {
    NEXT(write);
    if (strikes(WRITE, "write", fd)) { TORN(next(fd, bytes, size / 2)); return -1; }
    return next(fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    NEXT(pwrite);
    if (strikes(WRITE, "pwrite", fd)) { TORN(next(fd, bytes, size / 2, at)); return -1; }
    return next(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    NEXT(pwrite64);
    if (strikes(WRITE, "pwrite", fd)) { TORN(next(fd, bytes, size / 2, at)); return -1; }
    return next(fd, bytes, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (strikes(WRITE, "writev", fd)) { TORN(next(fd, parts, count / 2)); return -1; }
    return next(fd, parts, count);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    NEXT(sendfile);
    if (strikes(WRITE, "sendfile", to)) { TORN(next(to, from, at, size / 2)); return -1; }
    return next(to, from, at, size);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    NEXT(sendfile64);
    if (strikes(WRITE, "sendfile", to)) { TORN(next(to, from, at, size / 2)); return -1; }
    return next(to, from, at, size);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *into, size_t size, unsigned flags) {
    NEXT(copy_file_range);
    if (strikes(WRITE, "copy_file_range", to)) {
        TORN(next(from, at, to, into, size / 2, flags));
        return -1;
    }
    return next(from, at, to, into, size, flags);
}

int ftruncate(int fd, off_t size) {
    NEXT(ftruncate);
    if (strikes(WRITE, "ftruncate", fd)) { TORN((void)0); return -1; }
    return next(fd, size);
}

int ftruncate64(int fd, off64_t size) {
    NEXT(ftruncate64);
    if (strikes(WRITE, "ftruncate", fd)) { TORN((void)0); return -1; }
    return next(fd, size);
}

/* Nothing is really synced: the computer itself does not fail, and it would take most of the time. */
int fsync(int fd) {
    NEXT(fsync);
    if (strikes(SYNC, "fsync", fd)) return -1;
    return control ? 0 : next(fd);
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    if (strikes(SYNC, "fdatasync", fd)) return -1;
    return control ? 0 : next(fd);
}

static int opens(int folder, const char *path, int flags) {
    int saved = errno, is_there = path && !faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW);
    errno = saved;
    if ((flags & O_CREAT) && !is_there) return strikes_path(CREATE, "create", folder, path);
    if ((flags & O_ACCMODE) != O_RDONLY) return strikes_path(OPEN, "open", folder, path);
    return 0;
}

#define MODE mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) {
    NEXT(open);
    MODE
    return opens(AT_FDCWD, path, flags) ? -1 : next(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    NEXT(open64);
    MODE
    return opens(AT_FDCWD, path, flags) ? -1 : next(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    NEXT(openat);
    MODE
    return opens(folder, path, flags) ? -1 : next(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    NEXT(openat64);
    MODE
    return opens(folder, path, flags) ? -1 : next(folder, path, flags, mode);
}

/* Not a call that counts: only what is to be answered while nothing may be written. */
static int forbids(int folder, const char *path, int mode) {
    char whole[2 * PATH_MAX];
    if (!control || control->what != FROM_THERE_ON || !(control->kinds & OPEN)) return 0;
    if (!(mode & W_OK) || !path || !is_below_at(folder, path, whole)) return 0;
    errno = control->error;
    return 1;
}

int access(const char *path, int mode) {
    NEXT(access);
    return forbids(AT_FDCWD, path, mode) ? -1 : next(path, mode);
}

int faccessat(int folder, const char *path, int mode, int flags) {
    NEXT(faccessat);
    return forbids(folder, path, mode) ? -1 : next(folder, path, mode, flags);
}

/* What time it is; what the kernel writes into files is not changed by that. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int result = next(clock, now);
    if (!result && control && clock == CLOCK_REALTIME) now->tv_sec += control->clock;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*next)(struct timeval *, void *);
    if (!next) next = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int result = next(now, zone);
    if (!result && control) now->tv_sec += control->clock;
    return result;
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return strikes_path(NAME, "mkdir", AT_FDCWD, path) ? -1 : next(path, mode);
}

int rmdir(const char *path) {
    NEXT(rmdir);
    return strikes_path(NAME, "rmdir", AT_FDCWD, path) ? -1 : next(path);
}

int unlink(const char *path) {
    NEXT(unlink);
    return strikes_path(NAME, "unlink", AT_FDCWD, path) ? -1 : next(path);
}

int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    return strikes_path(NAME, "unlink", folder, path) ? -1 : next(folder, path, flags);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return strikes_path(NAME, "rename", AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    NEXT(renameat);
    return strikes_path(NAME, "rename", to_folder, to) ? -1
                                                       : next(from_folder, from, to_folder, to);
}

int link(const char *from, const char *to) {
    NEXT(link);
    return strikes_path(NAME, "link", AT_FDCWD, to) ? -1 : next(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    NEXT(linkat);
    return strikes_path(NAME, "link", to_folder, to) ? -1
                                                     : next(from_folder, from, to_folder, to, flags);
}
