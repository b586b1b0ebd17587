// Records what a process writes, syncs and names in one folder. Built as a library and loaded with LD_PRELOAD.
// FOLDER is the folder and RECORD the file for the record: lines, followed by the bytes whose number they end with.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;

static int within(const char *path) {
  const char *folder = getenv("FOLDER");
  return folder && !strncmp(path, folder, strlen(folder));
}

static int path_of(int fd, char *path) {
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, 4095);
  if (size < 0) return 0;
  path[size] = 0;
  return within(path);
}

static void put(const void *data, size_t size) {
  ssize_t (*put_real)(int, const void *, size_t) = REAL(ssize_t, "write", int, const void *, size_t);
  if (record < 0)
    record = REAL(int, "open64", const char *, int, ...)(getenv("RECORD"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (put_real(record, data, size) != (ssize_t)size) abort();
}

static void note(const char *kind, int fd, long number, const void *data, size_t size) {
  char line[80];
  put(line, snprintf(line, sizeof line, "%s %d %ld %zu\n", kind, fd, number, size));
  put(data, size);
}

static int opened(const char *real, int folder, const char *path, int flags, mode_t mode) {
  char full[4096];
  pthread_mutex_lock(&order);
  int fd = REAL(int, real, int, const char *, int, ...)(folder, path, flags, mode);
  if (fd >= 0 && path_of(fd, full)) note("open", fd, flags & O_TRUNC, full, strlen(full));
  pthread_mutex_unlock(&order);
  return fd;
}

#define OPENED(name, ...)                        \
  va_list rest;                                  \
  va_start(rest, flags);                         \
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
  va_end(rest);                                  \
  return opened(name, __VA_ARGS__, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED("openat", AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPENED("openat64", AT_FDCWD); }
int openat(int folder, const char *path, int flags, ...) { OPENED("openat", folder); }
int openat64(int folder, const char *path, int flags, ...) { OPENED("openat64", folder); }

ssize_t write(int fd, const void *data, size_t size) {
  char path[4096];
  ssize_t (*real)(int, const void *, size_t) = REAL(ssize_t, "write", int, const void *, size_t);
  if (!path_of(fd, path)) return real(fd, data, size);
  pthread_mutex_lock(&order);
  ssize_t done = real(fd, data, size);
  if (done > 0) note("write", fd, lseek(fd, 0, SEEK_CUR) - done, data, done);
  pthread_mutex_unlock(&order);
  return done;
}

static ssize_t placed(const char *name, int fd, const void *data, size_t size, off_t at) {
  char path[4096];
  ssize_t (*real)(int, const void *, size_t, off_t) = REAL(ssize_t, name, int, const void *, size_t, off_t);
  pthread_mutex_lock(&order);
  ssize_t done = real(fd, data, size, at);
  if (done > 0 && path_of(fd, path)) note("write", fd, at, data, done);
  pthread_mutex_unlock(&order);
  return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return placed("pwrite", fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return placed("pwrite64", fd, data, size, at); }

// what takes a file and perhaps a size, or one or two paths
#define OF_FILE(name, kind, number, parameters, ...)        \
  int name parameters {                                     \
    char path[4096];                                        \
    pthread_mutex_lock(&order);                             \
    int failed = ((int(*) parameters)dlsym(RTLD_NEXT, #name))(__VA_ARGS__); \
    if (!failed && path_of(fd, path)) note(kind, fd, number, "", 0); \
    pthread_mutex_unlock(&order);                           \
    return failed;                                          \
  }

OF_FILE(ftruncate, "truncate", size, (int fd, off_t size), fd, size)
OF_FILE(ftruncate64, "truncate", size, (int fd, off_t size), fd, size)
OF_FILE(fsync, "sync", 0, (int fd), fd)
OF_FILE(fdatasync, "sync", 0, (int fd), fd)

int unlink(const char *path) {
  pthread_mutex_lock(&order);
  int failed = REAL(int, "unlink", const char *)(path);
  if (!failed && within(path)) note("unlink", 0, 0, path, strlen(path));
  pthread_mutex_unlock(&order);
  return failed;
}

int rename(const char *from, const char *to) {
  char both[8192];
  pthread_mutex_lock(&order);
  int failed = REAL(int, "rename", const char *, const char *)(from, to);
  if (!failed && within(to)) note("rename", 0, 0, both, snprintf(both, sizeof both, "%s\n%s", from, to));
  pthread_mutex_unlock(&order);
  return failed;
}
