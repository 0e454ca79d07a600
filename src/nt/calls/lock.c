/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The lock of the NT surface, and the list of what a forked child forgets.
 */
#include "inside.h"

#include <pthread.h>

#include "view.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave_child(void)
{
    nt_profiles_forget();
    nt_config_forget();
    nt_profile_areas_forget();
    nt_view_forget();
    nt_hal_forget();
    nt_handles_forget();
    pthread_mutex_unlock(&lock);
}

static void set_up(void)
{
    pthread_atfork(nt_enter, nt_leave, leave_child);
}

void nt_enter(void)
{
    pthread_once(&once, set_up);
    pthread_mutex_lock(&lock);
}

void nt_leave(void)
{
    pthread_mutex_unlock(&lock);
}
