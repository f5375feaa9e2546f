package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newPayloadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "payloads",
		Short: "Raw inputs that services consented to keep: show one, erase a user's",
	}
	var ask askOptions
	show := &cobra.Command{
		Use:   "get SHA256",
		Short: "Write a payload to the standard output",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := ask.client()
			if err != nil {
				return err
			}
			return c.Payload(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	ask.register(show)
	cmd.AddCommand(show, newPayloadsErase())
	return cmd
}

func newPayloadsErase() *cobra.Command {
	var ask askOptions
	var user string
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Erase the payloads of a user",
		Long: `erase removes the payloads that only this user refers to, and the user's
references to others. Records, and dead letters, stay: docs/payloads.md says what
it does not reach.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := ask.client()
			if err != nil {
				return err
			}
			out, err := c.ErasePayloads(cmd.Context(), user)
			if err != nil {
				return err
			}
			if ask.output == "json" {
				return printJSON(cmd.OutOrStdout(), out)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d references removed, %d payloads of %d bytes erased, %d stay for others.\n",
				out.References, len(out.Removed)+len(out.Unreadable), out.Bytes, len(out.Shared))
			return err
		},
	}
	ask.register(cmd)
	cmd.Flags().StringVar(&user, "user", "", "user `id`, as in business.user_id")
	_ = cmd.MarkFlagRequired("user") // the flag is there
	return cmd
}
