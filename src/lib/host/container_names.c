/* SPDX-License-Identifier: BSD-2-Clause */
#include "container_names.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "read_file.h"

#define FILE_MOST   (4u << 20)
#define PODMAN_LIST "/var/lib/containers/storage/overlay-containers/containers.json"
#define PATH_MOST   4352 /* a path of 4095 bytes, and a name */

static bool is_id(const char *text)
{
    return strspn(text, "0123456789abcdef") == 64 && !text[64];
}

/* The document of a file, which the caller puts; NULL: there is none. */
static json_object *document_of(const char *path)
{
    json_object *document;
    size_t length;
    char *text;

    if (read_file(path, FILE_MOST, &text, &length))
        return NULL;
    document = json_tokener_parse(text);
    free(text);
    return document;
}

/* What is looked for among the entries of a folder. */
struct asked {
    const char *root;
    const char *folder; /* the entries' */
    const char *name;   /* of a container or a pod, or an id */
    char *ret;
    struct container_said *said;
};

/* Whether a function takes one of the entries of a folder; it may write into the entry's name. */
static bool any_entry(const char *root, const char *folder, struct asked *asked,
                      bool (*takes)(char *entry, const struct asked *asked))
{
    char path[PATH_MOST];
    struct dirent *entry;
    bool found = false;
    DIR *entries;

    snprintf(path, sizeof(path), "%s%s", root, folder);
    asked->folder = path;
    entries = opendir(path);
    while (entries && !found && (entry = readdir(entries)))
        found = takes(entry->d_name, asked);
    if (entries)
        closedir(entries);
    return found;
}

/* The list of all containers of Podman and CRI-O, which the caller puts; NULL: there is none. */
static json_object *podman_list(const char *root, size_t *ret_count)
{
    char path[PATH_MOST];
    json_object *list;

    snprintf(path, sizeof(path), "%s" PODMAN_LIST, root);
    list = document_of(path);
    *ret_count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    return list;
}

/* Docker has a folder for each container, whose document has its name behind a slash. */
static bool is_docker_name(const char *folder, const char *id, const char *name)
{
    char path[PATH_MOST];
    json_object *document, *is;
    const char *text;
    bool ret = false;

    snprintf(path, sizeof(path), "%s/%s/config.v2.json", folder, id);
    document = document_of(path);
    if (json_object_object_get_ex(document, "Name", &is) &&
        json_object_is_type(is, json_type_string)) {
        text = json_object_get_string(is);
        ret = !strcmp(text + (*text == '/'), name);
    }
    json_object_put(document);
    return ret;
}

static bool takes_docker(char *entry, const struct asked *asked)
{
    bool found = is_id(entry) && is_docker_name(asked->folder, entry, asked->name);

    if (found)
        memcpy(asked->ret, entry, 65);
    return found;
}

static bool has_name(json_object *names, const char *name)
{
    size_t count =
        json_object_is_type(names, json_type_array) ? json_object_array_length(names) : 0;

    for (size_t i = 0; i < count; i++) {
        const char *is = json_object_get_string(json_object_array_get_idx(names, i));

        if (is && !strcmp(is, name))
            return true;
    }
    return false;
}

/* Podman and CRI-O have a list of all containers. */
static bool find_podman(const char *root, const char *name, char ret[65])
{
    json_object *list, *id, *names;
    bool found = false;
    size_t count;

    list = podman_list(root, &count);
    for (size_t i = 0; i < count && !found; i++) {
        json_object *row = json_object_array_get_idx(list, i);

        found = json_object_object_get_ex(row, "id", &id) &&
                json_object_object_get_ex(row, "names", &names) && has_name(names, name) &&
                json_object_get_string(id) && is_id(json_object_get_string(id));
        if (found)
            memcpy(ret, json_object_get_string(id), 65);
    }
    json_object_put(list);
    return found;
}

/* Kubernetes calls logs POD_NAMESPACE_CONTAINER-ID.log. */
static bool takes_log(char *entry, const struct asked *asked)
{
    char *container = strrchr(entry, '_'), *dash = strrchr(entry, '-');
    bool found;

    if (!container || !dash || dash < container || strlen(dash) != 1 + 64 + 4)
        return false;
    dash[65] = *dash = '\0';
    found = is_id(dash + 1) && !strcmp(container + 1, asked->name);
    if (found)
        memcpy(asked->ret, dash + 1, 65);
    return found;
}

bool container_id_by_name(const char *root, const char *name, char ret[65])
{
    struct asked asked = {.name = name, .ret = ret};

    return any_entry(root, "/var/lib/docker/containers", &asked, takes_docker) ||
           find_podman(root, name, ret) ||
           any_entry(root, "/var/log/containers", &asked, takes_log);
}

/* Kubernetes calls a pod's folder of logs NAMESPACE_NAME_UID. */
static bool takes_pod(char *entry, const struct asked *asked)
{
    const char *name = asked->name, *slash = strchr(name, '/');
    char *pod = strchr(entry, '_'), *uid = strrchr(entry, '_');
    bool found;

    if (!pod || uid == pod || strlen(uid) != 37)
        return false;
    *pod = *uid = '\0';
    found = !strcmp(pod + 1, slash ? slash + 1 : name) &&
            (!slash || (strlen(entry) == (size_t)(slash - name) &&
                        !memcmp(entry, name, (size_t)(slash - name))));
    if (found)
        memcpy(asked->ret, uid + 1, 37);
    return found;
}

bool pod_uid_by_name(const char *root, const char *name, char ret[37])
{
    struct asked asked = {.name = name, .ret = ret};

    return any_entry(root, "/var/log/pods", &asked, takes_pod);
}

/* ---- what is said of an id ---- */

static void copy_text(char *ret, size_t size, json_object *text)
{
    if (json_object_is_type(text, json_type_string))
        snprintf(ret, size, "%s", json_object_get_string(text));
}

/* Notes which file it is, without the root. */
static void note_file(const char *root, const char *path, struct container_said *ret)
{
    snprintf(ret->file, sizeof(ret->file), "%.383s", path + strlen(root));
}

static bool say_docker(const char *root, const char *id, struct container_said *ret)
{
    char path[PATH_MOST];
    json_object *document, *name, *config, *image;

    snprintf(path, sizeof(path), "%s/var/lib/docker/containers/%s/config.v2.json", root, id);
    document = document_of(path);
    if (json_object_object_get_ex(document, "Name", &name) &&
        json_object_is_type(name, json_type_string)) {
        const char *text = json_object_get_string(name);

        snprintf(ret->container, sizeof(ret->container), "%s", text + (*text == '/'));
    }
    if (json_object_object_get_ex(document, "Config", &config) &&
        json_object_object_get_ex(config, "Image", &image))
        copy_text(ret->image, sizeof(ret->image), image);
    json_object_put(document);
    note_file(root, path, ret);
    return *ret->container != '\0';
}

/* The image's name is in a document within the document. */
static void say_image(json_object *row, struct container_said *ret)
{
    json_object *text, *metadata, *image;

    if (!json_object_object_get_ex(row, "metadata", &text) ||
        !json_object_is_type(text, json_type_string))
        return;
    metadata = json_tokener_parse(json_object_get_string(text));
    if (json_object_object_get_ex(metadata, "image-name", &image))
        copy_text(ret->image, sizeof(ret->image), image);
    json_object_put(metadata);
}

/* containerd keeps the specification that it started a container by in the folder of its
 * namespace. */
static bool says_containerd(char *entry, const struct asked *asked)
{
    static const struct {
        const char *annotation;
        size_t at;
    } rows[] = {
        {"io.kubernetes.cri.container-name", offsetof(struct container_said, container)},
        {"nerdctl/name", offsetof(struct container_said, container)},
        {"io.kubernetes.cri.sandbox-name", offsetof(struct container_said, pod)},
        {"io.kubernetes.cri.sandbox-namespace", offsetof(struct container_said, namespace)},
        {"io.kubernetes.cri.image-name", offsetof(struct container_said, image)},
    };
    char path[PATH_MOST + 384];
    json_object *document, *annotations, *text;

    snprintf(path, sizeof(path), "%s/%s/%s/config.json", asked->folder, entry, asked->name);
    document = *entry == '.' ? NULL : document_of(path);
    if (json_object_object_get_ex(document, "annotations", &annotations)) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (json_object_object_get_ex(annotations, rows[i].annotation, &text))
                copy_text((char *)asked->said + rows[i].at, sizeof(asked->said->image), text);
        }
        note_file(asked->root, path, asked->said);
    }
    json_object_put(document);
    return *asked->said->container;
}

static bool say_containerd(const char *root, const char *id, struct container_said *ret)
{
    struct asked asked = {.root = root, .name = id, .said = ret};

    return any_entry(root, "/run/containerd/io.containerd.runtime.v2.task", &asked,
                     says_containerd);
}

/* Handles containers without an id: the name is in the cgroup's path, and a file has to have it,
 * too. */
static bool say_machine(const char *root, const char *name, struct container_said *ret)
{
    static const struct {
        const char *folder, *behind;
    } files[] = {{"/run/systemd/machines", ""},
                 {"/var/lib/lxc", "/config"},
                 {"/var/lib/machines", "/etc/os-release"}};
    char path[PATH_MOST], file[384];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && *name != '.'; i++) {
        snprintf(file, sizeof(file), "%s/%s%s", files[i].folder, name, files[i].behind);
        snprintf(path, sizeof(path), "%s%s", root, file);
        if (access(path, F_OK))
            continue;
        snprintf(ret->container, sizeof(ret->container), "%s", name);
        note_file("", file, ret);
        return true;
    }
    return false;
}

static bool say_podman(const char *root, const char *id, struct container_said *ret)
{
    json_object *list, *is, *names;
    size_t count;

    list = podman_list(root, &count);
    for (size_t i = 0; i < count && !*ret->container; i++) {
        json_object *row = json_object_array_get_idx(list, i);

        if (!json_object_object_get_ex(row, "id", &is) || !json_object_get_string(is) ||
            strcmp(json_object_get_string(is), id) != 0)
            continue;
        if (json_object_object_get_ex(row, "names", &names) &&
            json_object_is_type(names, json_type_array))
            copy_text(ret->container, sizeof(ret->container), json_object_array_get_idx(names, 0));
        say_image(row, ret);
    }
    json_object_put(list);
    note_file("", PODMAN_LIST, ret);
    return *ret->container != '\0';
}

/* The name is POD_NAMESPACE_CONTAINER-ID.log; names of pods and namespaces have no '_'. */
static bool says_log(char *log, const struct asked *asked)
{
    struct container_said *ret = asked->said;
    char *dash = strrchr(log, '-'), *namespace = strchr(log, '_'), *container;

    if (!dash || strlen(dash) != 1 + 64 + 4 || memcmp(dash + 1, asked->name, 64) != 0 || !namespace)
        return false;
    container = strchr(namespace + 1, '_');
    if (!container || container > dash)
        return false;
    snprintf(ret->file, sizeof(ret->file), "/var/log/containers/%.255s", log);
    *dash = *namespace = *container = '\0';
    snprintf(ret->pod, sizeof(ret->pod), "%s", log);
    snprintf(ret->namespace, sizeof(ret->namespace), "%s", namespace + 1);
    snprintf(ret->container, sizeof(ret->container), "%s", container + 1);
    return true;
}

static bool forget(struct container_said *ret)
{
    *ret = (struct container_said){0};
    return false;
}

bool container_say(const char *root, const char *id, struct container_said *ret)
{
    struct asked asked = {.name = id, .said = ret};
    struct container_said runtime = {0};

    *ret = (struct container_said){0};
    if (!is_id(id))
        return !strchr(id, '/') && say_machine(root, id, ret);
    /* The kubelet names the container, and what runs it its image. */
    if (any_entry(root, "/var/log/containers", &asked, says_log)) {
        if (!say_podman(root, id, &runtime))
            say_containerd(root, id, &runtime);
        memcpy(ret->image, runtime.image, sizeof(ret->image));
        return true;
    }
    return say_docker(root, id, ret) || say_podman(root, id, ret) ||
           say_containerd(root, id, ret) || forget(ret);
}
