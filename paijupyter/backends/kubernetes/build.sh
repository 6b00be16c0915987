# Builds an image in a pod by rootless BuildKit, and pushes it, unless its registry has it. All that is of
# somebody's choice comes in variables and is content of files or one argument, never text of a shell.
set -u
# By USER buildkitd tells that it is not root outside, and keeps its state below HOME.
export USER="${USER:-user}" HOME="${HOME:-/home/user}" XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/1000}"
say() { echo "[paijupyter] $*"; }

folder=$(mktemp -d)
cd "$folder" || exit 70
mkdir asked who context
printf '%s' "$BUILDKITD" > buildkitd.toml
printf '%s' "$REQUIREMENTS" > context/requirements.txt
printf '%s' "$DOCKERFILE" > Dockerfile
printf 'FROM %s\n' "$IMAGE" > asked/Dockerfile
cat > who/Dockerfile <<END
FROM $BASE AS base
RUN ["sh", "-c", "echo \$(id -u):\$(id -g) > /tmp/.paijupyter-who"]
FROM scratch
COPY --from=base /tmp/.paijupyter-who /who
END

address="unix://$XDG_RUNTIME_DIR/buildkit/buildkitd.sock"
rootlesskit buildkitd --oci-worker-no-process-sandbox --config buildkitd.toml --addr "$address" \
    > buildkitd.log 2>&1 &
daemon=$!
tries=0
until buildctl --addr "$address" debug workers > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$daemon" 2> /dev/null; then
        cat buildkitd.log
        say "BuildKit does not start here."
        exit 70
    fi
    sleep 0.2
done

build() { buildctl --addr "$address" build --progress plain --frontend dockerfile.v0 "$@" 2>&1; }

if build --local context=asked --local dockerfile=asked > asked.log; then
    say "The registry has the image already: $IMAGE"
    exit 0
fi
# The image runs as whom its base runs as, though what is installed is installed by root.
if ! build --local context=who --local dockerfile=who --output type=local,dest=found > who.log; then
    cat who.log
    say "The image to build on cannot be used: $BASE"
    exit 71
fi
if ! build --local context=context --local dockerfile=. --opt "build-arg:WHO=$(cat found/who)" \
    --output "type=image,name=$IMAGE,push=true"; then
    say "The image is not built."
    exit 72
fi
say "The image is built: $IMAGE"
