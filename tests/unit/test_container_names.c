/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of containers and pods, by made-up files of the programs that run them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "container_names.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "aaaa456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "6f2d1d7c-31a4-4d2f-9c1e-0a1b2c3d4e5f"

static char root[] = "/tmp/prcb-containers-XXXXXX";

/* Makes a file, with the folders above it. */
static void make(const char *path, const char *text)
{
    char command[512];

    snprintf(command, sizeof(command), "f='%s%s'; mkdir -p \"${f%%/*}\"; cat > \"$f\"", root, path);
    FILE *out = popen(command, "w");
    fputs(text, out);
    assert_int_equal(pclose(out), 0);
}

static int begin(void **state)
{
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

static const char *container(const char *name)
{
    static char ret[65];

    return container_id_by_name(root, name, ret) ? ret : "";
}

static const char *pod(const char *name)
{
    static char ret[37];

    return pod_uid_by_name(root, name, ret) ? ret : "";
}

static void test_docker(void **state)
{
    assert_string_equal(container("web"), "");
    make("/var/lib/docker/containers/" ID "/config.v2.json", "{\"ID\": 1, \"Name\": \"/web\"}");
    make("/var/lib/docker/containers/x/config.v2.json", "{\"Name\": \"/other\"}");
    assert_string_equal(container("web"), ID);
    assert_string_equal(container("other"), "");
    assert_string_equal(container("we"), "");
    make("/var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\": 7}");
    assert_string_equal(container("web"), "");
    make("/var/lib/docker/containers/" ID "/config.v2.json", "[[[");
    assert_string_equal(container("web"), "");
}

static void test_podman(void **state)
{
    const char *list = "/var/lib/containers/storage/overlay-containers/containers.json";

    make(list, "[{\"id\": \"short\", \"names\": [\"bad\"]}, 3, {\"id\": \"" ID
               "\", \"names\": [null, \"db\"]}]");
    assert_string_equal(container("db"), ID);
    assert_string_equal(container("bad"), "");
    make(list, "{}");
    assert_string_equal(container("db"), "");
}

static void test_kubernetes(void **state)
{
    make("/var/log/containers/api-7c_prod_server-" ID ".log", "");
    make("/var/log/containers/garbage", "");
    make("/var/log/pods/prod_api-7c_" POD "/x", "");
    make("/var/log/pods/x_/x", "");
    assert_string_equal(container("server"), ID);
    assert_string_equal(container("api-7c"), "");
    assert_string_equal(pod("api-7c"), POD);
    assert_string_equal(pod("prod/api-7c"), POD);
    assert_string_equal(pod("test/api-7c"), "");
    assert_string_equal(pod("api"), "");
}

static void test_what_is_said_of_an_id(void **state)
{
    static const char other[] = "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct container_said said;

    make("/var/lib/docker/containers/" ID2 "/config.v2.json",
         "{\"Name\": \"/web\\u001b\", \"Config\": {\"Image\": \"shop:1\"}}");
    assert_true(container_say(root, ID2, &said));
    assert_string_equal(said.container, "web\x1b");
    assert_string_equal(said.image, "shop:1");
    assert_string_equal(said.pod, "");
    assert_string_equal(said.file, "/var/lib/docker/containers/" ID2 "/config.v2.json");
    make("/var/lib/containers/storage/overlay-containers/containers.json",
         "[{\"id\": \"" ID2
         "\", \"names\": [\"k8s\"], \"metadata\": \"{\\\"image-name\\\": \\\"img:2\\\"}\"}, 7]");
    make("/var/log/containers/pod-1_shop_web-" ID2 ".log", "");
    assert_true(container_say(root, ID2, &said));
    assert_string_equal(said.pod, "pod-1");
    assert_string_equal(said.namespace, "shop");
    assert_string_equal(said.container, "web");
    assert_string_equal(said.image, "img:2");
    assert_string_equal(said.file, "/var/log/containers/pod-1_shop_web-" ID2 ".log");
    /* A name that ends as an id is none. */
    assert_false(container_say(root, other, &said));
    assert_false(container_say(root, "../" ID2, &said));
    assert_string_equal(said.container, "");
}

static void test_containerd_and_machines(void **state)
{
    static const char id[] = "eeee456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct container_said said;

    make("/run/containerd/io.containerd.runtime.v2.task/moby/x/config.json", "{}");
    make("/run/containerd/io.containerd.runtime.v2.task/k8s.io/"
         "eeee456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/config.json",
         "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"api\", "
         "\"io.kubernetes.cri.sandbox-name\": \"api-7c\", \"io.kubernetes.cri.image-name\": 3, "
         "\"io.kubernetes.cri.sandbox-namespace\": \"prod\"}}");
    assert_true(container_say(root, id, &said));
    assert_string_equal(said.container, "api");
    assert_string_equal(said.pod, "api-7c");
    assert_string_equal(said.namespace, "prod");
    assert_string_equal(said.image, "");
    assert_non_null(strstr(said.file, "/k8s.io/eeee"));
    /* Its name is in the path; a file has to have it, too. */
    assert_false(container_say(root, "web", &said));
    make("/var/lib/lxc/web/config", "");
    assert_true(container_say(root, "web", &said));
    assert_string_equal(said.container, "web");
    assert_string_equal(said.file, "/var/lib/lxc/web/config");
    assert_false(container_say(root, ".", &said));
    assert_false(container_say(root, "../lxc/web", &said));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_docker),
        cmocka_unit_test(test_podman),
        cmocka_unit_test(test_kubernetes),
        cmocka_unit_test(test_what_is_said_of_an_id),
        cmocka_unit_test(test_containerd_and_machines),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
