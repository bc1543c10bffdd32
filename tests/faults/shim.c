/* Counts what a process does to files that interest us, and kills it at one of those calls.
 *
 * HQ_SHIM_MATCH   text a file's path must contain for its calls to count
 * HQ_SHIM_KILL    die at the n-th such call (1 is the first; nothing or 0: never)
 * HQ_SHIM_WHEN    "before" the call is carried out (the default) or "after" it
 * HQ_SHIM_REPORT  file to write the number of such calls to when the process ends by itself
 *
 * Death is SIGKILL: no handler runs and no buffer is flushed, as with kill -9 or a machine that stops. Loaded
 * with LD_PRELOAD, so that libraries that take the address of pwrite get ours too. A file descriptor's path
 * is what the kernel says it is; rename and unlink are judged by the paths they are given.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *match, *report;
static long kill_at, calls;
static int dies_after;

__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("HQ_SHIM_KILL"), *when = getenv("HQ_SHIM_WHEN");
    kill_at = number ? atol(number) : 0;
    dies_after = when && strcmp(when, "after") == 0;
    report = getenv("HQ_SHIM_REPORT");
    match = getenv("HQ_SHIM_MATCH");
}

/* A helper program that inherits the shim and touches nothing of interest leaves the report alone. */
__attribute__((destructor)) static void end(void)
{
    if (!report || !calls)
        return;
    FILE *file = fopen(report, "w");
    if (file) {
        fprintf(file, "%ld\n", calls);
        fclose(file);
    }
}

static int path_matters(const char *path)
{
    return match && path && strstr(path, match);
}

static int file_matters(int fd)
{
    char link[64], path[PATH_MAX + 1];
    if (!match)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0)
        return 0;
    path[length] = 0;
    return path_matters(path);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* The number of this call, if it counts. */
static long enter(int matters)
{
    long number = matters ? __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) : 0;
    if (number && number == kill_at && !dies_after)
        die();
    return number;
}

static void leave(long number)
{
    if (number && number == kill_at && dies_after)
        die();
}

#define SHIM(type, name, matters, parameters, arguments)     \
    type name parameters                                     \
    {                                                        \
        static type (*real) parameters;                      \
        if (!real)                                           \
            *(void **)&real = dlsym(RTLD_NEXT, #name);       \
        long number = enter(matters);                        \
        type result = real arguments;                        \
        int error = errno;                                   \
        leave(number);                                       \
        errno = error;                                       \
        return result;                                       \
    }

SHIM(ssize_t, write, file_matters(fd), (int fd, const void *from, size_t size), (fd, from, size))
SHIM(ssize_t, pwrite, file_matters(fd), (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
SHIM(ssize_t, pwrite64, file_matters(fd), (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
SHIM(int, fsync, file_matters(fd), (int fd), (fd))
SHIM(int, fdatasync, file_matters(fd), (int fd), (fd))
SHIM(int, ftruncate, file_matters(fd), (int fd, off_t size), (fd, size))
SHIM(int, ftruncate64, file_matters(fd), (int fd, off_t size), (fd, size))
SHIM(int, rename, path_matters(from) || path_matters(to), (const char *from, const char *to), (from, to))
SHIM(int, unlink, path_matters(path), (const char *path), (path))
