package main

import "context"

func runRouting(context.Context, []string) error { return nil }
