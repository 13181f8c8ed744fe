#!/bin/sh
# Generates the gateway's Go code from its .proto files. Needs protoc (Debian: protobuf-compiler);
# the Go plugins are built at the versions below into a temporary folder.
set -eu
cd "$(dirname "$0")/.."
grpc_plugin=v1.5.1

plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT
# protoc-gen-go comes with the protobuf module, at the version that go.mod names.
GOBIN=$plugins go install google.golang.org/protobuf/cmd/protoc-gen-go
GOBIN=$plugins go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$grpc_plugin"

PATH=$plugins:$PATH protoc \
	--proto_path=internal/gateway/gatewaypb \
	--go_out=internal/gateway/gatewaypb --go_opt=paths=source_relative \
	--go-grpc_out=internal/gateway/gatewaypb --go-grpc_opt=paths=source_relative \
	gateway.proto health.proto secrets.proto addresses.proto
