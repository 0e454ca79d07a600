# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: BSD-2-Clause
# examples/request.c, which measures each request of a server.
part request
echo '$ ./request'
"$BUILD/examples/request"
