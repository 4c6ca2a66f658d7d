/* Records what processes do to the files of one database, in the order in which it happens, for tests of power cuts.
 *
 * Loaded before the C library (LD_PRELOAD). Compiled for one test: FILES is how the paths of the recorded files begin,
 * INTO is the recording. A record is a head, the rest of the path after FILES, and the bytes of a write. A write is
 * recorded after it was done and a sync before and after it, so what a recorded sync keeps was truly written before it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITTEN = 1, TRUNCATED = 2, SYNC_BEGINS = 3, SYNC_ENDED = 4, REMOVED = 5 };

struct head {
    uint32_t kind, name_bytes;
    uint64_t at, length; /* of a write; of a truncation the length in `at`; of a sync its number in `at` */
};

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static int recording = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The rest of a path after FILES, or null. */
static const char *rest(const char *path) {
    return strncmp(path, FILES, strlen(FILES)) == 0 ? path + strlen(FILES) : NULL;
}

static const char *name_of(int file, char *path, size_t room) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, room - 1);
    if (length <= 0) return NULL;
    path[length] = 0;
    return rest(path);
}

static void record(enum kind kind, const char *name, uint64_t at, const void *bytes, uint64_t length) {
    struct head head = {kind, (uint32_t)strlen(name), at, length};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)name, head.name_bytes}, {(void *)bytes, length}};
    pthread_mutex_lock(&one);
    if (recording < 0) recording = open(INTO, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* In one call, so that records of several processes do not mix. */
    if (writev(recording, parts, 3) != (ssize_t)(sizeof head + head.name_bytes + length)) {
        fprintf(stderr, "the recording cannot be written\n");
        _exit(99);
    }
    pthread_mutex_unlock(&one);
}

static ssize_t written(int file, const void *bytes, ssize_t count, off64_t at) {
    char path[4096];
    const char *name = count > 0 ? name_of(file, path, sizeof path) : NULL;
    if (name) record(WRITTEN, name, (uint64_t)at, bytes, (uint64_t)count);
    return count;
}

ssize_t write(int file, const void *bytes, size_t count) {
    off64_t at = lseek64(file, 0, SEEK_CUR);
    return written(file, bytes, REAL(write)(file, bytes, count), at);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    return written(file, bytes, REAL(pwrite)(file, bytes, count, at), at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return written(file, bytes, REAL(pwrite64)(file, bytes, count, at), at);
}

static int truncated(int file, int result, off64_t length) {
    char path[4096];
    const char *name = result == 0 ? name_of(file, path, sizeof path) : NULL;
    if (name) record(TRUNCATED, name, (uint64_t)length, NULL, 0);
    return result;
}

int ftruncate(int file, off_t length) { return truncated(file, REAL(ftruncate)(file, length), length); }

int ftruncate64(int file, off64_t length) { return truncated(file, REAL(ftruncate64)(file, length), length); }

static int synced(int file, int (*sync)(int)) {
    static uint32_t count;
    char path[4096];
    const char *name = name_of(file, path, sizeof path);
    uint64_t number = (uint64_t)getpid() << 32 | __sync_add_and_fetch(&count, 1);
    if (name) record(SYNC_BEGINS, name, number, NULL, 0);
    int result = sync(file);
    if (name && result == 0) record(SYNC_ENDED, name, number, NULL, 0);
    return result;
}

int fsync(int file) { return synced(file, REAL(fsync)); }

int fdatasync(int file) { return synced(file, REAL(fdatasync)); }

int unlink(const char *path) {
    int result = REAL(unlink)(path);
    const char *name = result == 0 ? rest(path) : NULL;
    if (name) record(REMOVED, name, 0, NULL, 0);
    return result;
}
