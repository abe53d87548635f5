/* Delays MindSpore's receive thread where it has handed a message over and is about to read the next (F-15).
 *
 * Preloaded, it changes nothing but the time: after std::condition_variable::notify_one in a thread RECV_EVENT_LOOP the
 * second unlock of a mutex, that of the connection, is followed by a sleep of SLOW_US microseconds. It acts only where
 * the variable CHAOS_AGENT holds the text SLOW_IN, if that is given, and in the rank SLOW_RANK, if that is given.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static __thread int unlocks;

static int is_meant(void) {
  const char *in = getenv("SLOW_IN"), *agent = getenv("CHAOS_AGENT");
  const char *rank = getenv("SLOW_RANK"), *own = getenv("RANK_ID");
  return (!in || (agent && strstr(agent, in))) && (!rank || (own && !strcmp(own, rank)));
}

void _ZNSt18condition_variable10notify_oneEv(void *condition) {
  static void (*notify)(void *);
  char name[32] = "";
  if (!notify) notify = dlsym(RTLD_NEXT, "_ZNSt18condition_variable10notify_oneEv");
  prctl(PR_GET_NAME, name);
  if (!strcmp(name, "RECV_EVENT_LOOP") && is_meant()) unlocks = 2;
  notify(condition);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  static int (*unlock)(pthread_mutex_t *);
  if (!unlock) unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
  int result = unlock(mutex);
  if (unlocks && --unlocks == 0) usleep(getenv("SLOW_US") ? atoi(getenv("SLOW_US")) : 300000);
  return result;
}
