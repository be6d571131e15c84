NGPU=8 MODULE=llama3 CONFIG=llama3_9b ./run_train.sh
