package gateway

import (
	"context"
	"errors"
	"io"
)

// receive calls fn with each message of a stream until that ends, which is nil. It gives
// fn's error as it is, and what broke the stream by broken.
func receive[M any](stream interface{ Recv() (*M, error) }, broken func(error) error, fn func(*M) error) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		if err := fn(message); err != nil {
			return err
		}
	}
}

// failing is failed for what is asked within a deadline of its own.
func (c *Client) failing(action string) func(error) error {
	return func(err error) error { return c.failed(err, action) }
}

// failingUnless is failing for what goes on until the caller's ctx ends, whose error that is.
func (c *Client) failingUnless(ctx context.Context, action string) func(error) error {
	return func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.failed(err, action)
	}
}
