// Package pool
package pool
