#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# page.sh SCDOC: the page on standard input, as man pages with tables begin: tbl makes these. In groff 1.23 a
# page's text has straight margins on both sides unless the string AD says so; scdoc's .ad comes too early there.
printf '%s\n' "'\\\" t" '.ds AD l'
exec "$1"
