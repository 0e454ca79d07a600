/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of cgroups: what paths of container engines, Kubernetes and systemd say, how mounts tell
 * the version, and a made-up hierarchy in which folders come and go.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup_find.h"
#include "cgroup_names.h"

#define ID        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID  "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD       "6f2d1d7c-31a4-4d2f-9c1e-0a1b2c3d4e5f"
#define POD_SLICE "6f2d1d7c_31a4_4d2f_9c1e_0a1b2c3d4e5f"

static void paths_say_who_made_them(void **state)
{
    static const struct {
        const char *path, *unit, *container, *pod;
    } cases[] = {
        {"/", "", "", ""},
        {"/system.slice/ssh.service", "ssh.service", "", ""},
        {"/system.slice/docker-" ID ".scope", "docker-" ID ".scope", ID, ""},
        {"/docker/" ID, "", ID, ""},
        {"/machine.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope", ID, ""},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_SLICE
         ".slice/cri-containerd-" ID ".scope",
         "cri-containerd-" ID ".scope", ID, POD},
        {"/kubepods/besteffort/pod" POD "/" ID, "", ID, POD},
        {"/system.slice/containerd.service/kubepods-pod" POD_SLICE ".slice:cri-containerd:" ID,
         "containerd.service", ID, POD},
        {"/system.slice:docker:" ID, "", ID, ""},
        {"/ecs/" ID, "", ID, ""},
        /* Whoever made these may call them as he likes: a user, a service, a container. */
        {"/user.slice/user-1000.slice/user@1000.service/docker-" ID ".scope", "docker-" ID ".scope",
         "", ""},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/kubepods-pod" POD_SLICE
         ".slice/cri-containerd-" ID ".scope",
         "cri-containerd-" ID ".scope", "", ""},
        {"/user.slice/docker-" ID ".scope", "docker-" ID ".scope", "", ""},
        {"/system.slice/web.service/docker-" ID ".scope", "web.service", "", ""},
        {"/system.slice/web.service/kubepods/pod" POD "/" ID, "web.service", "", ""},
        {"/system.slice/containerd.service/" ID, "containerd.service", "", ""},
        {"/system.slice/docker-" ID ".scope/docker-" OTHER_ID ".scope", "docker-" ID ".scope", ID,
         ""},
        {"/docker/" ID "/kubepods/pod" POD "/" OTHER_ID, "", ID, ""},
        {"/handed-over/docker-" ID ".scope", "docker-" ID ".scope", "", ""},
        {"/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service",
         "firefox.service", "", ""},
        {"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "", ""},
        /* 63 digits, 65, capitals, a uid that is none */
        {"/docker/123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", "", ""},
        {"/docker/" ID "0", "", "", ""},
        {"/docker/" ID "-x", "", "", ""},
        {"/kubepods/pod6f2d1d7c", "", "", ""},
        {"/kubepods/podxxxxxxxx-31a4-4d2f-9c1e-0a1b2c3d4e5f", "", "", ""},
        {"", "", "", ""},
        {"///", "", "", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cgroup_identity said;

        cgroup_identify(cases[i].path, &said);
        assert_string_equal(said.unit, cases[i].unit);
        assert_string_equal(said.container, cases[i].container);
        assert_string_equal(said.pod, cases[i].pod);
    }
}

static void containers_without_ids_and_jobs(void **state)
{
    static const struct {
        const char *path, *machine, *job;
    } cases[] = {
        {"/lxc.payload.web", "web", ""},
        {"/lxc.payload.web/system.slice/ssh.service", "web", ""},
        {"/lxc/web", "web", ""},
        {"/lxc/web/lxc.payload.other", "web", ""},
        {"/machine.slice/machine-my\\x2dweb.scope/payload", "my-web", ""},
        {"/machine.slice/systemd-nspawn@web.service/payload", "web", ""},
        {"/system.slice/slurmstepd.scope/job_14/step_0/user/task_0", "", "14"},
        {"/system.slice/node1_slurmstepd.scope/job_14", "", "14"},
        {"/slurm/uid_1000/job_15/step_batch", "", "15"},
        {"/slurm_node1/uid_0/job_16", "", "16"},
        /* What others may call as they like, or what has no name. */
        {"/lxc.monitor.web", "", ""},
        {"/lxc.payload.", "", ""},
        {"/lxc", "", ""},
        {"/user.slice/lxc.payload.web", "", ""},
        {"/system.slice/lxc.payload.web", "", ""},
        {"/system.slice/machine-web.scope", "", ""},
        {"/user.slice/user-1000.slice/user@1000.service/machine.slice/machine-web.scope", "", ""},
        {"/machine.slice/machine-a\\x2fb.scope", "", ""},
        {"/machine.slice/machine-a\\x00b.scope", "", ""},
        {"/machine.slice/machine-a\\x2.scope", "a\\x2", ""},
        {"/docker/" ID "/lxc.payload.web", "", ""},
        {"/system.slice/web.service/slurm/uid_0/job_1", "", ""},
        {"/system.slice/slurmstepd.scope/x/job_1", "", ""},
        {"/slurm/uid_0/job_", "", ""},
        {"/slurm/uid_0/job_1x", "", ""},
        {"/slurm/uid_0/job_123456789012345678901", "", ""},
        {"/lxc.payload.0123456789012345678901234567890123456789012345678901234567890123456789", "",
         ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cgroup_identity said;

        cgroup_identify(cases[i].path, &said);
        assert_string_equal(said.machine, cases[i].machine);
        assert_string_equal(said.job, cases[i].job);
    }
}

static enum cgroup_setup setup_of(const char *mounts, char *mount, size_t size)
{
    char file[] = "/tmp/prcb-mounts-XXXXXX";
    int fd = mkstemp(file);
    enum cgroup_setup ret;

    assert_true(fd >= 0 && write(fd, mounts, strlen(mounts)) == (ssize_t)strlen(mounts));
    close(fd);
    ret = cgroup_setup(file, mount, size);
    unlink(file);
    return ret;
}

static void mounts_say_the_version(void **state)
{
    char mount[64];

    assert_int_equal(setup_of("proc /proc proc rw 0 0\n"
                              "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
                              mount, sizeof(mount)),
                     CGROUP_V2);
    assert_string_equal(mount, "/sys/fs/cgroup");
    assert_int_equal(setup_of("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
                              "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
                              mount, sizeof(mount)),
                     CGROUP_HYBRID);
    assert_string_equal(mount, "/sys/fs/cgroup/unified");
    assert_int_equal(
        setup_of("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", mount, sizeof(mount)), CGROUP_V1);
    assert_string_equal(mount, "");
    assert_int_equal(setup_of("garbage\n\n", mount, sizeof(mount)), CGROUP_NONE);
    assert_int_equal(cgroup_setup("/nonexistent", mount, sizeof(mount)), CGROUP_NONE);
}

static uint64_t make(const char *root, const char *path)
{
    char name[256];
    struct stat st;

    snprintf(name, sizeof(name), "%s%s", root, path);
    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(stat(name, &st), 0);
    return st.st_ino;
}

static void removed(const char *root, const char *path)
{
    char name[256];

    snprintf(name, sizeof(name), "%s%s", root, path);
    assert_int_equal(rmdir(name), 0);
}

static void numbers_have_paths(void **state)
{
    char root[] = "/tmp/prcb-cgroups-XXXXXX";
    struct cgroup_names *names;
    struct prcb_error err;
    uint64_t a, below, dotted, later;
    const char *path;
    struct stat st;

    assert_non_null(mkdtemp(root));
    a = make(root, "/a.slice");
    below = make(root, "/a.slice/b.service");
    dotted = make(root, "/.hidden");
    assert_int_equal(cgroup_names_open(root, &names, &err), 0);
    cgroup_names_refresh(names);
    path = cgroup_names_find(names, below);
    assert_string_equal(path, "/a.slice/b.service");
    assert_string_equal(cgroup_names_find(names, a), "/a.slice");
    assert_string_equal(cgroup_names_find(names, dotted), "/.hidden");
    assert_int_equal(stat(root, &st), 0);
    assert_string_equal(cgroup_names_find(names, st.st_ino), "/");
    /* Made after the walk of this look: known from the next on. */
    later = make(root, "/later");
    cgroup_names_refresh(names);
    assert_string_equal(cgroup_names_find(names, later), "/later");
    assert_true(cgroup_names_alive(names, later));
    assert_null(cgroup_names_find(names, 1));
    assert_false(cgroup_names_alive(names, 1));
    removed(root, "/a.slice/b.service");
    cgroup_names_refresh(names);
    assert_false(cgroup_names_alive(names, below));
    assert_true(cgroup_names_alive(names, a));
    assert_ptr_equal(cgroup_names_find(names, below), path);
    /* So many that the table grows. */
    for (uint64_t i = 1; i < 5000; i++)
        cgroup_names_find(names, i << 40);
    assert_string_equal(cgroup_names_find(names, a), "/a.slice");
    /* Those that are gone are forgotten; the number of one may be another's later. */
    cgroup_names_refresh(names);
    cgroup_names_drop(names);
    assert_string_equal(cgroup_names_find(names, a), "/a.slice");
    assert_null(cgroup_names_find(names, below));
    cgroup_names_close(names);
    cgroup_names_close(NULL);
    removed(root, "/a.slice");
    removed(root, "/later");
    removed(root, "/.hidden");
    removed(root, "");
}

/* The folders of what is wanted, without the roots in which they lie; "": none. */
static const char *found(const char *mounts, size_t root, enum cgroup_wanted wanted,
                         const char *name)
{
    struct cgroup_list list = {0};
    int result = cgroup_find(mounts, wanted, name, &list);
    static char ret[512];

    *ret = '\0';
    assert_int_equal(result, list.count ? 0 : -ENOENT);
    for (size_t i = 0; i < list.count; i++)
        snprintf(ret + strlen(ret), sizeof(ret) - strlen(ret), "%s%s", i ? " " : "",
                 list.paths[i] + root);
    cgroup_list_free(&list);
    return ret;
}

/* Version 2's hierarchy comes first, although the mounts have it last. */
static void names_have_folders(void **state)
{
    static const char *const folders[] = {"/v1",
                                          "/v1/old.service",
                                          "/v1/web.service",
                                          "/v2",
                                          "/v2/system.slice",
                                          "/v2/system.slice/web.service",
                                          "/v2/system.slice/web.service/web.service",
                                          "/v2/system.slice/docker-" ID ".scope",
                                          "/v2/kubepods.slice",
                                          "/v2/kubepods.slice/kubepods-pod" POD_SLICE ".slice",
                                          "/v2/kubepods.slice/kubepods-pod" POD_SLICE
                                          ".slice/cri-containerd-" OTHER_ID ".scope"};
    const size_t count = sizeof(folders) / sizeof(*folders);
    char root[] = "/tmp/prcb-cgroups-XXXXXX", mounts[64], procs[512];
    size_t at = sizeof(root) - 1;
    FILE *out;

    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < count; i++)
        make(root, folders[i]);
    snprintf(mounts, sizeof(mounts), "%s/mounts", root);
    snprintf(procs, sizeof(procs), "%s/v1/old.service/cgroup.procs", root);
    out = fopen(mounts, "w");
    fprintf(out, "x %s/v1 cgroup rw 0 0\nx %s/v2 cgroup2 rw 0 0\n", root, root);
    fclose(out);
    fclose(fopen(procs, "w"));
    assert_string_equal(found(mounts, at, CGROUP_BY_UNIT, "web"), "/v2/system.slice/web.service");
    assert_string_equal(found(mounts, at, CGROUP_BY_UNIT, "web.service"),
                        "/v2/system.slice/web.service");
    assert_string_equal(found(mounts, at, CGROUP_BY_UNIT, "old"), "/v1/old.service");
    assert_string_equal(found(mounts, at, CGROUP_BY_UNIT, "we"), "");
    assert_string_equal(found(mounts, at, CGROUP_BY_UNIT, "system.slice"), "/v2/system.slice");
    assert_string_equal(found(mounts, at, CGROUP_BY_CONTAINER, "0123"),
                        "/v2/system.slice/docker-" ID ".scope");
    assert_string_equal(found(mounts, at, CGROUP_BY_CONTAINER, OTHER_ID), folders[count - 1]);
    assert_string_equal(found(mounts, at, CGROUP_BY_CONTAINER, "0124"), "");
    assert_string_equal(found(mounts, at, CGROUP_BY_POD, POD), folders[count - 2]);
    assert_string_equal(found(mounts, at, CGROUP_BY_PATH, "/old.service"), "/v1/old.service");
    assert_string_equal(found(mounts, at, CGROUP_BY_PATH, "/web.service"), "");
    assert_string_equal(found(mounts, at, CGROUP_BY_PATH, ""), "");
    assert_string_equal(found("/nonexistent", 0, CGROUP_BY_UNIT, "web"), "");
    unlink(procs);
    unlink(mounts);
    for (size_t i = count; i--;)
        removed(root, folders[i]);
    removed(root, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_say_who_made_them),
        cmocka_unit_test(containers_without_ids_and_jobs),
        cmocka_unit_test(mounts_say_the_version),
        cmocka_unit_test(numbers_have_paths),
        cmocka_unit_test(names_have_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
