/* Makes one system call of a process fail, or all from one on. Preloaded; armed by the process itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Instead of an error number: transfer half, or drop the POSIX locks of the process on a file. */
enum { SHORT = -1, DROP = -2 };

static long left = 0; /* calls until the one that fails; 0 when not armed */
static int fault, for_ever, fired;
static const char *file;

void arm(long call, int what, int ever, const char *path) {
    fired = 0, fault = what, for_ever = ever, file = path, left = call;
}

int disarm(void) {
    left = 0;
    return fired;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Whether this call fails; a call whose locks are dropped goes on. */
static int fails(int transfers) {
    if (left == 0 || --left > 0) return 0;
    left = for_ever ? 1 : 0;
    fired = 1;
    if (fault == DROP) {
        long armed = left;
        left = 0;
        int descriptor = REAL(open)(file, O_RDONLY);
        if (descriptor >= 0) REAL(close)(descriptor);
        left = armed;
        return 0;
    }
    if (fault == SHORT) return transfers;
    errno = fault;
    return 1;
}

#define WRAP(type, name, parameters, ...)          \
    type name parameters {                         \
        if (fails(0)) return -1;                   \
        return REAL(name)(__VA_ARGS__);            \
    }
#define TRANSFER(name, parameters, ...)            \
    ssize_t name parameters {                      \
        if (fails(n > 1)) {                        \
            if (fault != SHORT) return -1;         \
            n /= 2;                                \
        }                                          \
        return REAL(name)(__VA_ARGS__);            \
    }
#define OPEN(name)                                               \
    int name(const char *path, int flags, ...) {                 \
        va_list rest;                                            \
        va_start(rest, flags);                                   \
        mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                            \
        if (fails(0)) return -1;                                 \
        return REAL(name)(path, flags, mode);                    \
    }
#define CONTROL(name)                                            \
    int name(int descriptor, int command, ...) {                 \
        va_list rest;                                            \
        va_start(rest, command);                                 \
        void *argument = va_arg(rest, void *);                   \
        va_end(rest);                                            \
        if (fails(0)) return -1;                                 \
        return REAL(name)(descriptor, command, argument);        \
    }

OPEN(open)
OPEN(open64)
CONTROL(fcntl)
CONTROL(fcntl64)
TRANSFER(read, (int descriptor, void *to, size_t n), descriptor, to, n)
TRANSFER(write, (int descriptor, const void *from, size_t n), descriptor, from, n)
TRANSFER(pread, (int descriptor, void *to, size_t n, off_t at), descriptor, to, n, at)
TRANSFER(pread64, (int descriptor, void *to, size_t n, off64_t at), descriptor, to, n, at)
TRANSFER(pwrite, (int descriptor, const void *from, size_t n, off_t at), descriptor, from, n, at)
TRANSFER(pwrite64, (int descriptor, const void *from, size_t n, off64_t at), descriptor, from, n, at)
WRAP(int, fsync, (int descriptor), descriptor)
WRAP(int, fdatasync, (int descriptor), descriptor)
WRAP(int, ftruncate, (int descriptor, off_t length), descriptor, length)
WRAP(int, ftruncate64, (int descriptor, off64_t length), descriptor, length)
WRAP(int, flock, (int descriptor, int operation), descriptor, operation)
WRAP(int, unlink, (const char *path), path)
WRAP(int, rename, (const char *from, const char *to), from, to)
WRAP(int, stat, (const char *path, struct stat *to), path, to)
WRAP(int, stat64, (const char *path, struct stat64 *to), path, to)
WRAP(int, fstat, (int descriptor, struct stat *to), descriptor, to)
WRAP(int, fstat64, (int descriptor, struct stat64 *to), descriptor, to)
WRAP(int, fchmod, (int descriptor, mode_t mode), descriptor, mode)

int close(int descriptor) {
    int fails_after = fails(0), error = errno;
    int closed = REAL(close)(descriptor); /* a descriptor is gone even where closing it reports an error */
    if (!fails_after) return closed;
    errno = error;
    return -1;
}
