/* SPDX-License-Identifier: BSD-2-Clause */
#include "metrics_rows.h"

int metrics_take_names(struct cli_parser *parser, void *target)
{
    struct metrics_options *options = target;

    return metrics_parse_names(parser->value, &options->names)
               ? cli_usage_error(parser->command,
                                 "--names '%s': must be prcb, node or windows, or several of them "
                                 "with commas",
                                 parser->value)
               : CLI_OK;
}
