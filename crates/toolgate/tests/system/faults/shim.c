/* Faults that only the system can give. Preloaded into the gate by the tests of faults.rs, which write the control words:
   a file of 64-bit integers that is mapped here. The system's own functions do the rest. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_OFFSET, SYNC_FAILS, NAMES_HANG, NAMES_FAIL };

static volatile const int64_t *control;

__attribute__((constructor)) static void open_control(void) {
    const char *path = getenv("TOOLGATE_TEST_FAULTS");
    int file = path ? open(path, O_RDONLY) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) _exit(99);
    close(file);
    control = mapped;
}

static int64_t word(int number) { return control ? control[number] : 0; }

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += word(CLOCK_OFFSET);
    return result;
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (!word(SYNC_FAILS)) return real(file);
    errno = EIO;
    return -1;
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (!word(SYNC_FAILS)) return real(file);
    errno = EIO;
    return -1;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real) real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))
        dlsym(RTLD_NEXT, "getaddrinfo");
    while (word(NAMES_HANG)) usleep(20000);
    return word(NAMES_FAIL) ? EAI_AGAIN : real(name, service, hints, found);
}
