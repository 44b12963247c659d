// What benchmarks/chaos.py preloads into a run (LD_PRELOAD): a slow disk and a clock that jumps. The file that
// LAPJOINT_CHAOS names has two numbers of eight bytes: milliseconds that fsync and every write to a regular file take
// longer, and seconds that the clock of the day is ahead. Others write them while the run goes on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t* numbers;

__attribute__((constructor)) static void open_numbers(void) {
  const char* path = getenv("LAPJOINT_CHAOS");
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* map = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (map != MAP_FAILED) numbers = map;
}

static void slow_down(int file) {
  struct stat about;
  if (!numbers || numbers[0] <= 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return;
  const struct timespec pause = {numbers[0] / 1000, numbers[0] % 1000 * 1000000};
  nanosleep(&pause, NULL);
}

int fsync(int file) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  slow_down(file);
  return real(file);
}

ssize_t write(int file, const void* data, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  slow_down(file);
  return real(file, data, size);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int failed = real(clock, now);
  if (!failed && numbers && clock == CLOCK_REALTIME) now->tv_sec += numbers[1];
  return failed;
}

int gettimeofday(struct timeval* now, void* zone) {
  struct timespec precise;
  (void)zone;
  const int failed = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return failed;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into) *into = now.tv_sec;
  return now.tv_sec;
}
