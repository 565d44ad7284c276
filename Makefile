# A thin front of CMake; what each build is made of stands in CMakePresets.json.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

.PHONY: release dev setup python demo test check-long bench install fuzz format clean

release:
	tools/setup.sh build
	cmake --preset release
	cmake --build --preset release

setup:
	tools/setup.sh

dev: setup
	cmake --preset dev
	cmake --build --preset dev

demo: setup release
	tools/demo.sh

# The Python package, into .venv.
python: setup
	tools/install_python.sh

test: setup release dev python
	ctest --preset dev

check-long: setup release dev python
	CUTSET_LONG=1 ctest --preset dev

# Seven minutes on an idle machine; results go to bench/RESULTS.md.
bench: setup release python
	bench/run.sh

install: release
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

# Each target for FUZZ_SECONDS; what it finds goes to build/fuzz/, what it learns too.
fuzz:
	tools/setup.sh dev
	cmake --preset fuzz
	cmake --build --preset fuzz
	set -e; for program in $$(find build/fuzz/tests -maxdepth 1 -name "fuzz_*" -perm -u+x | sort); do \
		name=$${program##*/fuzz_}; \
		seeds=tests/fuzz/corpus/$$name; [ -d $$seeds ] || seeds=tests/$$name; \
		mkdir -p build/fuzz/corpus/$$name; \
		$$program -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/$$name- \
			build/fuzz/corpus/$$name $$seeds; \
	done

format:
	find include src tests -name '*.[ch]' -exec clang-format -i {} +

clean:
	rm -rf build
